"""The audit log, the switches of data sets, tokens, secrets and reloads."""

import sqlalchemy as sa
from alembic import op

revision = "v1"
down_revision = None
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "audit",
        sa.Column("id", _NUMBER, primary_key=True),
        sa.Column("time", sa.DateTime, nullable=False),
        sa.Column("visitor", sa.String(80), nullable=False),
        sa.Column("dataset", sa.String(80), nullable=False),
        sa.Column("edition", sa.String(80), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("outcome", sa.String(40), nullable=False),
        sa.Column("cells", sa.Integer, nullable=False),
        sa.Column("milliseconds", sa.Float, nullable=False),
    )
    op.create_index("audit_by_time", "audit", ["time"])
    op.create_table(
        "switches",
        sa.Column("dataset", sa.String(80), primary_key=True),
        sa.Column("is_closed", sa.Boolean, nullable=False),
        sa.Column("time", sa.DateTime, nullable=False),
        sa.Column("visitor", sa.String(80), nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("name", sa.String(80), nullable=False, unique=True),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("time", sa.DateTime, nullable=False),
        sa.Column("revoked", sa.DateTime),
    )
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(20), primary_key=True),
        sa.Column("day", sa.Date, nullable=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "reloads",
        sa.Column("id", _NUMBER, primary_key=True),
        sa.Column("time", sa.DateTime, nullable=False),
        sa.Column("visitor", sa.String(80), nullable=False),
    )
