#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::train {

/// The places of names in a list that holds them, such as the tensors of a file. It keeps hashes
/// and places in one array, so that a list of very many names has no nodes and no copies of them.
class NameIndex {
 public:
  /// With room for `names` names.
  explicit NameIndex(size_t names = 0) { make_room(names); }

  /// Adds the name at the next place, the first being 0. It must be a new one.
  void add(std::string_view name) {
    if (2 * (size_ + 1) > slots_.size()) make_room(2 * (size_ + 1));
    put({hash_of(name), static_cast<uint32_t>(++size_)});
  }

  /// The place of `name`; nothing if it was not added. `name_at` returns the name at a place.
  template <class NameAt>
  std::optional<size_t> find(std::string_view name, const NameAt& name_at) const {
    const uint32_t hash = hash_of(name);
    for (size_t at = hash & mask(); slots_[at].number != 0; at = (at + 1) & mask()) {
      const size_t place = slots_[at].number - 1;
      if (slots_[at].hash == hash && name_at(place) == name) return place;
    }
    return std::nullopt;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = 0;  ///< the place, from 1; 0: free
  };

  static uint32_t hash_of(std::string_view name) {
    return static_cast<uint32_t>(std::hash<std::string_view>()(name));
  }
  size_t mask() const { return slots_.size() - 1; }
  void put(Slot slot);
  void make_room(size_t names);

  std::vector<Slot> slots_;  ///< a power of two, at most half of them used
  size_t size_ = 0;
};

}  // namespace lockstep::train
