#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that repeat or rearrange the elements of a tensor, composed of views and copies.

/// The tensor repeated `repeats[i]` times along dimension i; more repeats than dimensions add
/// leading dimensions. Always a copy.
Tensor repeat(const Tensor& self, IntList repeats);
/// repeat, with missing leading repeats taken as 1.
Tensor tile(const Tensor& self, IntList dims);
/// Moves each element by `shifts[i]` positions along `dims[i]`, wrapping around. Without dims the
/// flattened tensor is rolled.
Tensor roll(const Tensor& self, IntList shifts, IntList dims = {});
/// A tensor of zeros with the last dimension of self on the diagonal of dim1 and dim2 (of the
/// result).
Tensor diag_embed(const Tensor& self, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
/// [..., C r^2, H, W] -> [..., C, H r, W r]: channel c r^2 + i r + j fills row i, column j of each
/// r x r square (Shi et al. 2016).
Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor);
/// The inverse of pixel_shuffle.
Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor);

/// [batch, channels, ...] with the channels of `groups` groups of equal size interleaved: channel
/// g of each group, then g + 1 (Zhang et al. 2018).
Tensor channel_shuffle(const Tensor& self, int64_t groups);

/// Parts along `dim` whose sizes differ by at most one, the larger ones first, or the parts between
/// `indices`, which are interpreted as in slices.
std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim = 0);
std::vector<Tensor> tensor_split(const Tensor& self, IntList indices, int64_t dim = 0);

// split, split_with_sizes and chunk made of one slice per part, so that each part may be changed in
// place; autograd does not allow that for views that one operator returns together.
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntList split_sizes,
                                            int64_t dim = 0);
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim = 0);

/// [...] -> [..., num_classes], int64: 1 at the class, else 0. self is int64; -1 means the largest
/// class in self plus 1. Throws IndexError on a class out of range.
Tensor one_hot(const Tensor& self, int64_t num_classes = -1);

}  // namespace lockstep
