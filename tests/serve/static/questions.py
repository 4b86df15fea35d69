"""Random addresses of pages, right and wrong ones, for any data set."""

import random
from urllib.parse import urlencode

from discreet.serve.query import CHARTS

_WRONG = ("nowhere", "Region", "regoin", "x|y", "", "1e3", "ª", "'quoted'", 'both "and" \'', "ÅSE")
LANGUAGES = ("en", "nb")


class Questions:
    """Random questions about data sets.

    Args:
      datasets: The data sets by name.
      seed: Draws the questions.
      charts: The charts that are asked for.
    """

    def __init__(self, datasets, seed, charts=CHARTS):
        self.datasets, self.random, self.charts = datasets, random.Random(seed), charts

    def some(self, n):
        """So many addresses, each with a language."""
        return [(self.address(), self.random.choice(LANGUAGES)) for _ in range(n)]

    def address(self):
        name = self.random.choice(list(self.datasets))
        path = self.random.choices(("table", "about", ""), (60, 1, 1))[0]
        if path != "table":
            return f"/d/{name}/{path}".rstrip("/")
        asked = self.table(self.datasets[name])
        if self.chance(0.05):
            self.random.shuffle(asked)
        if asked and self.chance(0.04):
            place = self.random.randrange(len(asked))
            asked[place] = (asked[place][0], self.random.choice(_WRONG))
        if self.chance(0.02):
            asked.append((self.random.choice(("colour", "row", "layer", "where.")), "x"))
        return f"/d/{name}/table?{urlencode(asked)}"

    def chance(self, share):
        return self.random.random() < share

    def few(self, codes, most=3):
        if self.chance(0.5):
            most = 1
        return self.random.sample(codes, min(len(codes), self.random.randint(1, most)))

    def table(self, dataset):
        """The parameters of a table."""
        variables, asked = dataset.variables, []
        most = min(len(variables), self.random.choice((1, 2, 2, 3, 3, 4)))
        for variable in self.random.sample(variables, most):
            place = self.random.choice(("rows", "rows", "columns", "columns", "layers", "where"))
            asked += self.of_variable(variable, place)
        if self.chance(0.15):
            other = self.random.choice(variables)
            codes = [e.code for e in other.entries(other.details[0])]
            asked += [(f"where.{other.name}", code) for code in self.few(codes)]
        return asked + self.view(asked, dataset)

    def of_variable(self, variable, place):
        detail = self.random.choice(variable.details)
        codes = [e.code for e in variable.entries(detail) if not e.is_total]
        if place == "where":
            return [(f"where.{variable.name}", code) for code in self.few(codes)]
        asked = [(place, detail.name)]
        if self.chance(0.2):
            asked += [(f"pick.{variable.name}", code) for code in self.few(codes, len(codes))]
        if self.chance(0.25):
            for k in range(self.random.randint(1, 3)):
                label = f"Group {k} (<b>)"
                if self.chance(0.1):
                    label = self.random.choice(("Others", "total", codes[0], "a\x01b\u2028\x85 c"))
                group = "|".join([label, *self.few(codes)])
                asked.append((f"group.{variable.name}", group))
        if self.chance(0.2):
            asked += [(f"fold.{variable.name}", code) for code in self.few(codes)]
        if place == "layers" and self.chance(0.6):
            asked.append((f"layer.{variable.name}", self.random.choice(codes)))
        return asked

    def view(self, asked, dataset):
        found = [("chart", self.random.choice(self.charts))]
        if self.chance(0.35):
            found.append(("show", self.random.choice(("row", "column", "total"))))
        if self.chance(0.2):
            found.append(("totals", "0"))
        if self.chance(0.3):
            found.append(("sort", self.sort(asked, dataset)))
        if self.chance(0.2):
            variable = self.random.choice(dataset.variables)
            kind = self.random.choice(("pick", "where", "group"))
            found.append(("edit", f"{kind}.{variable.name}"))
            if kind == "group" and self.chance(0.5):
                codes = [e.code for e in variable.entries(variable.details[0])]
                label = self.random.choice(("New | one", "New\x01 | one"))
                found += [("new.of", variable.name), ("new.label", label)]
                some = self.few(codes)
                found += [("new.code", code) for code in [*some, *some[:1]]]
        if self.chance(0.1):
            found.append(("unit", self.random.choice(("count", "weight", "turnover"))))
        return found

    def sort(self, asked, dataset):
        """A column by its codes, or the only one."""
        details = {d.name: (v, d) for v in dataset.variables for d in v.details}
        columns = [details[value] for kind, value in asked if kind == "columns"]
        columns = columns if self.chance(0.95) else []
        codes = [self.random.choice(v.entries(d)).code for v, d in columns]
        return self.random.choice(("", "-")) + ("|".join(codes) or "value")
