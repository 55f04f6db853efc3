#pragma once

namespace lockstep {

/// While one lives, on any thread of the process, matrix products of f32 on the cpu give each row
/// the same bits beside any number of other rows, also where that takes time: where the library's
/// sums depend on how many rows there are (oneDNN's kernels for AVX2). Runs with reproducibility
/// BITWISE hold one. Elsewhere products have this property without it. Thread-safe.
class ExactRows {
 public:
  ExactRows() noexcept;
  ExactRows(const ExactRows&) noexcept : ExactRows() {}
  ExactRows& operator=(const ExactRows&) noexcept { return *this; }
  ~ExactRows();
};

/// Whether there is an ExactRows.
bool wants_exact_rows() noexcept;

}  // namespace lockstep
