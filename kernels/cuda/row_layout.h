#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/dispatch/row_step.h"

namespace lockstep::cuda {

/// What a kernel of a RowProgram does one after the other for a row, and where in shared memory it
/// keeps what it computes in between.
struct RowLayout {
  /// Steps, by their places in the program, that need nothing but what earlier levels made. Threads
  /// of a row meet behind a level.
  struct Level {
    std::vector<size_t> elements;  ///< loops on the row's elements, computed together
    std::vector<size_t> numbers;   ///< loops on the row's numbers
    std::vector<size_t> rows;      ///< of RowStep
  };

  std::vector<Level> levels;
  std::vector<int32_t> cells;  ///< by slot: its row or number in shared memory; -1 for none
  int32_t rows = 0;            ///< in shared memory, for each row that is computed at a time
  int32_t numbers = 0;
  bool is_of_blocks = false;  ///< a block computes a row, else a warp

  explicit RowLayout(const RowProgram& program);

  /// Bytes of shared memory that a row takes there.
  static int64_t row_bytes(const RowProgram& program);
  /// Bytes that a row takes with all its rows and numbers.
  int64_t bytes(const RowProgram& program) const;
};

// What the kernel takes, the one struct RowParams of its text:
//
//   int64_t rows, length;
//   int64_t row_bytes;     RowLayout::row_bytes
//   int64_t packed;        whether packs of a row's elements can be read at once
//   char* at[];            of slots with memory, in their order
//   alignas(8) unsigned char constants[];    of the steps, level by level: of `elements` and
//                                            `numbers` functors and numbers, of `rows` what they
//                                            take

/// Whether the slot has an address in `at`.
inline bool has_memory(const RowProgram::Slot& slot) {
  return slot.use != RowProgram::Use::kScratch;
}

/// Where the arrays of a program's RowParams begin, in bytes.
struct RowParamsShape {
  static constexpr size_t kMost = 4096;  ///< that a kernel takes
  static constexpr size_t kAt = 32;

  size_t addresses = 0;
  size_t constants = 0;  ///< bytes

  explicit RowParamsShape(const RowProgram& program);
  size_t bytes() const { return kAt + addresses * sizeof(char*) + constants; }
};

}  // namespace lockstep::cuda
