#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::train {

/// Parameters that one call of an optimizer's operator updates: all of them have a cast that is
/// kept for products (autograd/autocast.h), which the call writes too, or none has.
struct UpdateGroup {
  std::vector<uint32_t> numbers;  ///< indices of the parameters
  std::vector<Tensor> casts;      ///< one for each of them, or empty
};

/// Splits the parameters with these `numbers` by whether they have a kept cast of their present
/// values. Leaves out empty groups.
std::vector<UpdateGroup> groups_by_cast(std::span<const Tensor> parameters,
                                        std::span<const uint32_t> numbers);

/// Says that the group's casts were given the parameters' new values.
void renew_casts(std::span<const Tensor> parameters, const UpdateGroup& group);

}  // namespace lockstep::train
