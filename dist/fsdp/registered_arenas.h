#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Memory that is registered with the library of a group (ProcessGroup::registered_memory), for
/// arenas that come and go. Registering takes long and all ranks, so that it is done once, here;
/// memory that was given back is kept for the next arena and freed with this object.
///
/// All ranks must take and give back arenas in the same order: an arena then has the same place in
/// the memory of all ranks, which windows of symmetric memory require. Not thread-safe.
class RegisteredArenas {
 public:
  /// Registers a slot of each of these numbers of bytes, or none where the group has no such
  /// memory. Collective in the group.
  RegisteredArenas(ProcessGroup& group, Device device, std::vector<size_t> slots);
  RegisteredArenas(const RegisteredArenas&) = delete;
  RegisteredArenas& operator=(const RegisteredArenas&) = delete;

  /// An uninitialised vector in the smallest slot that is free and large enough; undefined if there
  /// is none, and for no elements.
  Tensor take(int64_t elements, DType dtype);
  /// Ends the use of a tensor that `take` gave, for work that was queued on the current stream
  /// before this call or that this stream waits for. No effect on any other tensor.
  void give_back(const Tensor& arena) noexcept;
  /// Whether `take` gave the tensor.
  bool has(const Tensor& arena) const noexcept;

 private:
  struct Slot {
    Ref<Storage> memory;
    bool is_taken = false;
  };

  std::vector<Slot> slots_;  ///< the smallest first
};

}  // namespace lockstep::dist
