#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/dispatch/mode.h"

namespace lockstep {

/// Writes a line for each operator that reaches a backend, with shapes and dtypes of what goes in
/// and comes out: "mm(float32[8, 64] on cpu, float32[64, 10] on cpu) -> float32[8, 10] on cpu".
class DispatchLogger final : public DispatchMode {
 public:
  /// `write` gets each line without a newline.
  explicit DispatchLogger(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

  void call(const Operator& op, KeySet keys, Stack& stack) override;

 private:
  std::function<void(std::string_view)> write_;
};

/// Writes a line of the same form for each call as the user made it: a composite is one call.
class FunctionLogger final : public FunctionMode {
 public:
  explicit FunctionLogger(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

  void call(const Operator& op, Stack& stack) override;

 private:
  std::function<void(std::string_view)> write_;
};

}  // namespace lockstep
