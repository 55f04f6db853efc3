#include "compile/host_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"

namespace lockstep::compiler {

namespace {

bool same_number(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

bool same_scalar(const Scalar& a, const Scalar& b) {
  if (a.kind() != b.kind()) return false;
  return a.is_floating() ? same_number(a.to_double(), b.to_double()) : a.to_int() == b.to_int();
}

bool same_argument(const NodeArgument& a, const NodeArgument& b) {
  return a.kind == b.kind && a.values == b.values && same_constant(a.constant, b.constant);
}

}  // namespace

std::vector<Value> HostRead::read(TensorList tensors) const {
  if (of_sizes) {
    std::vector<Value> sizes;
    for (const Tensor& tensor : tensors) sizes.push_back(Value(tensor.sizes()).own());
    return sizes;
  }
  const NoGradGuard no_grad;
  const AutocastStateGuard no_autocast({});
  return call(*op, arguments, tensors);
}

bool same_constant(const Value& a, const Value& b) {
  if (a.tag() != b.tag()) return false;
  switch (a.tag()) {
    case Value::Tag::kDouble:
      return same_number(a.to_double(), b.to_double());
    case Value::Tag::kScalar:
      return same_scalar(a.to_scalar(), b.to_scalar());
    case Value::Tag::kDoubleList:
    case Value::Tag::kOwnedDoubleList:
      return std::ranges::equal(a.to_double_list(), b.to_double_list(), same_number);
    case Value::Tag::kIntList:
    case Value::Tag::kOwnedIntList:
      return std::ranges::equal(a.to_int_list(), b.to_int_list());
    case Value::Tag::kInt:
      return a.to_int() == b.to_int();
    case Value::Tag::kNone:
      return true;
    default:
      return a.to_string() == b.to_string();
  }
}

bool same_constants(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::ranges::equal(a, b, same_constant);
}

bool same_call(const Node& a, const Node& b) {
  return a.op == b.op && a.results == b.results &&
         std::ranges::equal(a.arguments, b.arguments, same_argument);
}

bool same_calls(std::span<const Node> a, std::span<const Node> b) {
  return std::ranges::equal(a, b, same_call);
}

bool same_graph(const Graph& a, const Graph& b) {
  return a.inputs == b.inputs && a.outputs == b.outputs && same_calls(a.nodes, b.nodes) &&
         a.values == b.values && a.writes == b.writes;
}

std::string to_string(const std::vector<Value>& values) {
  std::string text;
  for (const Value& value : values) {
    if (!text.empty()) text += ", ";
    const bool is_real = value.tag() == Value::Tag::kScalar && value.to_scalar().is_floating();
    // All of its digits: numbers that differ in the last one look different.
    text += is_real ? fmt::format("{}", value.to_scalar().to_double()) : value.to_string();
  }
  return text;
}

std::string description(const HostRead& read, const std::vector<Value>& values) {
  const char* const form = read.of_sizes ? "the sizes of what {} makes are {}" : "{} gives {}";
  return fmt::format(fmt::runtime(form), read.op->name(), to_string(values));
}

}  // namespace lockstep::compiler
