#include "train/weights/name_index.h"

#include <bit>
#include <utility>

namespace lockstep::train {

void NameIndex::put(Slot slot) {
  size_t at = slot.hash & mask();
  while (slots_[at].number != 0) at = (at + 1) & mask();
  slots_[at] = slot;
}

void NameIndex::make_room(size_t names) {
  const std::vector<Slot> old = std::exchange(slots_, {});
  slots_.resize(std::bit_ceil(2 * names + 2));
  for (const Slot& slot : old) {
    if (slot.number != 0) put(slot);
  }
}

}  // namespace lockstep::train
