#include "dist/fsdp/registered_arenas.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::dist {

RegisteredArenas::RegisteredArenas(ProcessGroup& group, Device device, std::vector<size_t> slots) {
  std::ranges::sort(slots);
  for (const size_t bytes : slots) {
    if (bytes == 0) continue;
    Ref<Storage> memory = group.registered_memory(bytes, device);
    if (memory == nullptr) return;  // on no rank, from then on
    slots_.push_back({std::move(memory)});
  }
}

Tensor RegisteredArenas::take(int64_t elements, DType dtype) {
  const size_t bytes = static_cast<size_t>(elements) * size_of(dtype);
  if (bytes == 0) return {};
  const auto slot = std::ranges::find_if(
      slots_, [&](const Slot& each) { return !each.is_taken && each.memory->bytes() >= bytes; });
  if (slot == slots_.end()) return {};
  slot->is_taken = true;
  const std::array<int64_t, 1> sizes{elements};
  return Tensor(make_ref<TensorImpl>(make_ref<Storage>(slot->memory, 0, bytes), to_dims(sizes),
                                     contiguous_strides(sizes), 0, dtype));
}

void RegisteredArenas::give_back(const Tensor& arena) noexcept {
  if (!arena.defined()) return;
  for (Slot& slot : slots_) {
    if (slot.memory.get() == arena.storage()->parent()) slot.is_taken = false;
  }
}

bool RegisteredArenas::has(const Tensor& arena) const noexcept {
  return std::ranges::any_of(
      slots_, [&](const Slot& slot) { return slot.memory.get() == arena.storage()->parent(); });
}

}  // namespace lockstep::dist
