"""Runs the steps on the connection that `upgraded` hands over."""

from alembic import context

from discreet.serve.office.database import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=True,
)
context.run_migrations()
