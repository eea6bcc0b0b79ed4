"""The floors of include/qtensor: which folder stands on which, and what each may use. HACKING.md says why."""
# SPDX-License-Identifier: BSD-3-Clause

HEIGHT = {'core': 0, 'format': 1, 'policy': 2, 'scheme': 3, 'tensor': 4, 'reference': 5, 'simd': 6, 'ops': 7,
          'expr': 8, 'compat': 8}

# The headers beside the folders: the floors that each may include.
UMBRELLAS = {
    'types.hpp': {'core', 'format', 'policy', 'scheme', 'tensor', 'reference'},
    'kernels.hpp': set(HEIGHT) - {'expr'},
    'qtensor.hpp': set(HEIGHT),
}


def floor_of(name):
    """The folder of a header named relative to include/qtensor; '' for an umbrella."""
    return name.rpartition('/')[0]


def may_include(name, other):
    """Whether the header `name` may include the header `other`, both relative to include/qtensor."""
    mine, theirs = floor_of(name), floor_of(other)
    if mine == '':
        return other in UMBRELLAS if theirs == '' else theirs in UMBRELLAS.get(name, set())
    return theirs == mine or (theirs in HEIGHT and HEIGHT[theirs] < HEIGHT[mine])


def forbidden_libraries(name):
    """The libraries that a header may not reach, by its own includes or any other way."""
    floors = {floor_of(name)} if floor_of(name) else UMBRELLAS.get(name, set())
    highest = max((HEIGHT.get(floor, 8) for floor in floors), default=8)
    if highest < HEIGHT['simd']:
        return ['xsimd', 'Eigen']
    return [] if 'expr' in floors else ['Eigen']
