#pragma once

#include <cstddef>

#include "core/dispatch/element_loop.h"
#include "kernels/cuda/divider.h"
#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/kept_loop.h"
#include "kernels/cuda/random/random_words.h"

namespace lockstep::cuda {

// What the kernel of a program takes (loop_source.h), the one struct LoopParams of its text:
//
//   uint32_t count;   elements
//   uint32_t packed;  whether all arrays lie so that packs of them can be read at once
//   char* at[];       of slots with memory, in their order
//   Divider periods[];                        of slots in rows, in the slots' order
//   alignas(8) unsigned char constants[];     of each slot that is drawn, its RandomTruths; of each
//                                             with numbers of rows, its IndexList; of each of rows
//                                             their stride, int64_t; then of each step its functor
//                                             and its numbers
//
// An array without elements is left out.

/// Whether the slot has an address in `at`.
inline bool has_memory(const LoopProgram::Slot& slot) {
  return slot.place != LoopProgram::Place::kScratch &&
         slot.place != LoopProgram::Place::kRowNumbers;
}
/// Whether the slot repeats a row, or stands for a row's elements.
inline bool repeats(const LoopProgram::Slot& slot) {
  return slot.place == LoopProgram::Place::kRow || slot.place == LoopProgram::Place::kColumn;
}
/// Whether the slot has a divider in `periods`.
inline bool has_period(const LoopProgram::Slot& slot) {
  return repeats(slot) || slot.place == LoopProgram::Place::kRows ||
         slot.place == LoopProgram::Place::kGathered;
}
inline size_t in_words(size_t bytes) { return (bytes + 7) / 8 * 8; }
/// Bytes of the slot in `constants`.
inline size_t constant_bytes(const LoopProgram::Slot& slot) {
  if (slot.drawn) return in_words(sizeof(RandomTruths));
  if (slot.place == LoopProgram::Place::kRows) return sizeof(int64_t);
  return slot.place == LoopProgram::Place::kRowNumbers ? in_words(sizeof(IndexList)) : 0;
}
/// Bytes of the step in `constants`.
inline size_t constant_bytes(const KeptLoop& loop) {
  size_t bytes = in_words(loop.functor_bytes);
  for (size_t i = 0; i < loop.count; ++i) bytes += loop.operands[i].is_number ? 8 : 0;
  return bytes;
}

/// Where the arrays of a program's LoopParams begin, in bytes.
struct LoopParamsShape {
  static constexpr size_t kMost = 4096;  ///< that a kernel takes
  static constexpr size_t kAt = 8;

  size_t addresses = 0;
  size_t periods = 0;
  size_t constants = 0;  ///< bytes

  explicit LoopParamsShape(const LoopProgram& program) {
    for (const LoopProgram::Slot& slot : program.slots) {
      addresses += has_memory(slot) ? 1 : 0;
      periods += has_period(slot) ? 1 : 0;
      constants += constant_bytes(slot);
    }
    for (const LoopProgram::Step& step : program.steps) constants += constant_bytes(loop_of(step));
  }
  size_t periods_at() const { return kAt + addresses * sizeof(char*); }
  size_t constants_at() const { return in_words(periods_at() + periods * sizeof(Divider)); }
  size_t bytes() const { return constants_at() + constants; }
};

}  // namespace lockstep::cuda
