"""For users of a release who know the law of its noise: inference without the truth.

Everything here is a function of public values, the statement and the public matrix. Noise that is
taken as data looks like association, and moves cells from one count to the next; here it is allowed
for.

>>> import discreet as dc
>>> design = dc.Design.product({"region": 2, "sex": 2}, "region*sex")
>>> table = dc.Table.from_inner(design, [40, 35, 30, 45])
>>> trial = table.simulate("discrete-laplace", epsilon=1.0, seed=1)
>>> chi_square(trial, "region*sex").inflation > 1
True
"""

from discreet.release.inference.chi_square import ChiSquareTest as ChiSquareTest
from discreet.release.inference.chi_square import chi_square as chi_square
from discreet.release.inference.chi_square import chi_square_test as chi_square_test
from discreet.release.inference.chi_square import goodness_of_fit as goodness_of_fit
from discreet.release.inference.frequencies import CountFrequencies as CountFrequencies
from discreet.release.inference.frequencies import count_frequencies as count_frequencies
from discreet.release.inference.law import matrix_of as matrix_of
