#include "train/optimizer/kept_casts.h"

#include <utility>

#include "autograd/autocast.h"

namespace lockstep::train {

std::vector<UpdateGroup> groups_by_cast(std::span<const Tensor> parameters,
                                        std::span<const uint32_t> numbers) {
  UpdateGroup with, without;
  for (const uint32_t number : numbers) {
    Tensor cast = kept_cast(parameters[number]);
    (cast.defined() ? with : without).numbers.push_back(number);
    if (cast.defined()) with.casts.push_back(std::move(cast));
  }
  std::vector<UpdateGroup> groups;
  for (UpdateGroup* group : {&with, &without}) {
    if (!group->numbers.empty()) groups.push_back(std::move(*group));
  }
  return groups;
}

void renew_casts(std::span<const Tensor> parameters, const UpdateGroup& group) {
  if (group.casts.empty()) return;
  for (const uint32_t number : group.numbers) renew_kept_cast(parameters[number]);
}

}  // namespace lockstep::train
