#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// Gives a leaf the elements of `source`, with its geometry, dtype and device, and keeps what
/// refers to the leaf: for a parameter that moves to another device. Shares the source's memory and
/// does not become a view of it. Whether the leaf requires grad stays; its gradient, if any, moves
/// along. A graph that was recorded before must not run backward to the leaf any more.
///
/// Throws AutogradError if the leaf is no leaf, is a view or a sample of a batch, has hooks or a
/// destination for its gradient (a model that ranks share does not move), or requires grad and
/// would get a dtype that is not floating.
void set_data(const Tensor& leaf, const Tensor& source);
/// Throws what set_data would for a source of `dtype`.
void check_set_data(const Tensor& leaf, DType dtype);

}  // namespace lockstep
