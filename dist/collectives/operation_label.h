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
  static OperationLabel bucket(size_t number) noexcept { return {"bucket ", number, {}}; }
  /// Operations of fragment `number`, from 1, of a model whose ranks take local steps.
  static OperationLabel fragment(size_t number) noexcept { return {"fragment ", number, {}}; }
  /// Operations of the unit with this path, empty for the root. The text must outlive the label.
  static OperationLabel unit(std::string_view path) noexcept { return {"unit ", 0, path}; }
  ~OperationLabel();
  OperationLabel(const OperationLabel&) = delete;
  OperationLabel& operator=(const OperationLabel&) = delete;

  /// Writes the label of this thread to `text`, of `bytes` bytes with the final 0: "bucket 3",
  /// "fragment 1", "unit h.0", "root unit", or nothing. Of a path that does not fit the end is
  /// written.
  static void write(char* text, size_t bytes) noexcept;

 private:
  OperationLabel(std::string_view kind, size_t number, std::string_view unit) noexcept;

  const OperationLabel* outer_;
  std::string_view kind_;
  size_t number_;  ///< 0: of a unit
  std::string_view unit_;
};

}  // namespace lockstep::dist
