#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep::dist {

/// Says what the operations are for that this thread begins while it exists: a bucket of gradients
/// or a unit of a sharded model. The flight recorder keeps the innermost label with them. Costs a
/// few stores.
class OperationLabel {
 public:
  /// Operations of bucket `number`, from 1.
  static OperationLabel bucket(size_t number) noexcept { return {number, {}}; }
  /// Operations of the unit with this path, empty for the root. The text must outlive the label.
  static OperationLabel unit(std::string_view path) noexcept { return {0, path}; }
  ~OperationLabel();
  OperationLabel(const OperationLabel&) = delete;
  OperationLabel& operator=(const OperationLabel&) = delete;

  /// Writes the label of this thread to `text`, of `bytes` bytes with the final 0: "bucket 3",
  /// "unit h.0", "root unit", or nothing. Of a path that does not fit the end is written.
  static void write(char* text, size_t bytes) noexcept;

 private:
  OperationLabel(size_t bucket, std::string_view unit) noexcept;

  const OperationLabel* outer_;
  size_t bucket_;  ///< 0: of a unit
  std::string_view unit_;
};

}  // namespace lockstep::dist
