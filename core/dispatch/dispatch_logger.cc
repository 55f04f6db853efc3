#include "core/dispatch/dispatch_logger.h"

#include "core/base/check.h"

namespace lockstep {

namespace {

std::string joined(std::span<const Value> values) {
  std::string text;
  for (const Value& value : values) {
    if (!text.empty()) text += ", ";
    text += value.to_string();
  }
  return text;
}

/// Text of the call. To be taken before the call, since an in-place form may change its arguments.
std::string call_text(const Operator& op, const Stack& stack) {
  return fmt::format("{}({})", op.name(), joined(stack.arguments()));
}

std::string result_text(const Stack& stack) {
  const std::string results = joined({stack.results().data(), stack.results().size()});
  return stack.results().size() == 1 ? results : fmt::format("({})", results);
}

}  // namespace

void DispatchLogger::call(const Operator& op, KeySet keys, Stack& stack) {
  const std::string text = call_text(op, stack);
  pass_on(op, keys, stack);
  write_(fmt::format("{} -> {}", text, result_text(stack)));
}

void FunctionLogger::call(const Operator& op, Stack& stack) {
  const std::string text = call_text(op, stack);
  op.call_boxed(stack);
  write_(fmt::format("{} -> {}", text, result_text(stack)));
}

}  // namespace lockstep
