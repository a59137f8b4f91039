"""Every number that steers a default run, with its unit, its reason and the evidence for it.

The evidence is in docs/evidence/rules.md; "unvaried" says that nobody has tried another value.  Limits on memory, grids and tolerances of checks stand
where they are used: they do not steer.
"""

# -- the noise at the start ---------------------------------------------------------------------------------------------

KNEE = 0.02
"""Share of the smallest bound.  Prior and posterior start at the largest std at which the bound of the untrained network is at most this much above
its smallest value.  Starting at the mean size of a weight instead costs 0.2 points on seven tables."""

DRAWS = 10
"""Draws of the weights, as in the paper: at each std of the scan, and for the slopes of left-out losses.  Unvaried."""

STD_POINTS = 15
"""Stds of the scan, equally far apart on a logarithmic scale.  Unvaried."""

SCAN_SHARE = 0.1
"""Share of the cost of training that the scan may take.  A limit on time."""

# -- γ: how far the data may move the weights ---------------------------------------------------------------------------

LARGEST_GAMMA = 2000.0
"""The largest γ at which the bound is stated, and for classification the largest that is trained with.  With it for all data diabetes loses 14 (of 55)
in rmse and digits with 30 % wrong labels 16 points."""

CLASS_GAIN = 1.0
"""Gain, without unit, at which classification starts, at most: an example's own pull equals the prior's.  With 3, noisy labels lose 1 to 2 points."""

NORMALISED_KL_WEIGHT = 4e-6
"""Weight of the divergence, per nat, for classification with BatchNorm, whose outputs do not depend on the size of the weights before it: γ n = 250,000 for all n.
A small CNN on 5,000 images has 65 % with it and 60 % at γ = 2000."""

EXAMPLES = 512
"""Most examples in the kernel; half as many where they share a forward pass, as nodes of a graph do.  With 256, energy chose a sixth of the gain; with 512 nodes citeseer APPNP
has 89.9 % for 90.5 (one seed)."""

GAMMA_STEP, STEPS = 10**0.5, 3
"""Ratio of one γ to the next in the search, and how many further ones it tries in a direction.  Two steps lose 0.6 to 1 points on dblp APPNP."""

FURTHER_LENGTH = 0.25
"""Length of training at each further γ, relative to that at the first.  The search in all earns 15 points where 30 % of the labels are wrong."""

# -- training -----------------------------------------------------------------------------------------------------------

CURVATURE_MEMORY = 0.99
"""Share of the running mean of the curvature that each step keeps.  Unvaried."""

STEP_IN_STDS = 0.2
"""Adam's rate in stds of the prior at the start, falling to zero along a cosine.  Half and twice as much give the same; without the fall, diabetes loses 0.8 and
breast_cancer 0.7 points."""

LARGEST_CHANGE, NORMALISED_CHANGE = 1.0, 0.5
"""Relative change of the output that one step may make, to first order: summed over the layers of a chain; with BatchNorm, which keeps the layers apart, the root of the sum of
squares.  Without the first CNN13 learns nothing; with the second ResNet18 has 51 % for 49."""

BATCH_SIZE, LARGE_N = 64, 10_000
"""Examples per batch, and the number of examples from which a batch has twice as many, to save time.  Unvaried."""

MIN_STEPS, FULL_BATCH_STEPS, MIN_EPOCHS = 3000, 500, 30
"""Steps of training at one γ: so many, or so many epochs if that is more; fewer where all data is one batch.  2,000 and 4,000 steps give the same on digits to 0.1 points."""

# -- before training ----------------------------------------------------------------------------------------------------

FAR = 30.0
"""Factor by which the size of a column or of the targets has to differ from one for training to take place in units.  Without units raw tables lose
5 to 28 points, and half of the rmse.  The limit itself is unvaried."""

FAINT = 0.03
"""Standard deviation between random inputs, where they reach the last layer, below which the layers before it are rescaled to pass on signals of unit size.
CNNs with three convolutions gain 0.6 to 3 points, deeper ones 6 to 13; perceptrons are above it and would gain nothing."""
