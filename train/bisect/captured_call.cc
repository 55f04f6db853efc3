#include "train/bisect/captured_call.h"

#include <fmt/format.h>

#include <cstring>

#include "core/dispatch/value_tensors.h"
#include "train/bisect/operator_trace.h"

namespace lockstep::train {
namespace {

CapturedArgument capture(const std::string& name, const Value& value) {
  std::vector<Tensor> tensors;
  each_defined_tensor(value, [&](const Tensor& tensor) { tensors.push_back(tensor); });
  if (!tensors.empty()) return {name, hash_of(tensors)};
  return {name, ContentHasher().add(value.to_string()).result()};
}

/// Whether a call reads what it changes, as add_ does. What copy_ overwrites may be memory that
/// nothing has set yet.
bool reads_what_it_writes(const Operator& op) {
  if (op.form() == OpForm::kOut || op.draws_random_numbers()) return false;
  const std::string& root = op.root().name();
  return !root.starts_with("copy") && !root.starts_with("fill") && !root.starts_with("zero");
}

std::string type_of(const Tensor& tensor) {
  return fmt::format("{}{}", name(tensor.dtype()), tensor.shape());
}

const std::byte* bytes_of(const Tensor& tensor) {
  return static_cast<const std::byte*>(tensor.data());
}

bool same_element(const Tensor& a, const Tensor& b, int64_t element) {
  const size_t width = size_of(a.dtype());
  const size_t offset = static_cast<size_t>(element) * width;
  return std::memcmp(bytes_of(a) + offset, bytes_of(b) + offset, width) == 0;
}

std::string text_of(const Tensor& tensor, int64_t element) {
  const auto width = static_cast<int64_t>(size_of(tensor.dtype()));
  std::string bits;
  for (int64_t byte = width - 1; byte >= 0; --byte) {
    bits += fmt::format("{:02x}", static_cast<unsigned>(bytes_of(tensor)[element * width + byte]));
  }
  const Scalar value = tensor.view({-1}).select(0, element).item_scalar();
  if (!is_floating(tensor.dtype())) return fmt::format("{} (0x{})", value.to_double(), bits);
  const int digits = tensor.dtype() == DType::kF64 ? 17 : 9;
  return fmt::format("{:.{}g} (0x{})", value.to_double(), digits, bits);
}

std::vector<int64_t> index_of(int64_t element, IntList sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t dim = sizes.size(); dim-- > 0;) {
    index[dim] = element % sizes[dim];
    element /= sizes[dim];
  }
  return index;
}

}  // namespace

void CallCapture::before(const Call& call, const Stack& stack) {
  if (!is_wanted(call)) return;
  captured_.emplace();
  for (size_t i = 0; i < stack.arguments().size(); ++i) {
    const Argument& argument = call.op.schema().arguments[i];
    if (argument.written && !reads_what_it_writes(call.op)) continue;
    // Runs on different devices name different ones.
    if (argument.type.base == BaseType::kDevice) continue;
    captured_->arguments.push_back(capture(argument.name, stack.arguments()[i]));
  }
}

void CallCapture::after(const Call& call, const std::vector<Tensor>& written) {
  if (is_wanted(call)) captured_->written = copies_of(written);
}

std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& each : tensors) {
    copies.push_back(each.detach().to(kCPU).contiguous().clone());
  }
  return copies;
}

ElementDifference describe_element(const Tensor& a, const Tensor& b, int64_t element) {
  ElementDifference found{.type = type_of(a), .element = element, .elements = a.numel()};
  for (int64_t i = 0; i < a.numel(); ++i) found.differing += same_element(a, b, i) ? 0 : 1;
  found.index = index_of(element, a.sizes());
  found.a = text_of(a, element);
  found.b = text_of(b, element);
  return found;
}

std::optional<ElementDifference> first_differing_element(const std::vector<Tensor>& a,
                                                         const std::vector<Tensor>& b) {
  if (a.size() != b.size()) {
    return ElementDifference{.a = fmt::format("{} tensors", a.size()),
                             .b = fmt::format("{} tensors", b.size())};
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (type_of(a[i]) != type_of(b[i])) {
      return ElementDifference{.tensor = i, .a = type_of(a[i]), .b = type_of(b[i])};
    }
    for (int64_t element = 0; element < a[i].numel(); ++element) {
      if (same_element(a[i], b[i], element)) continue;
      ElementDifference found = describe_element(a[i], b[i], element);
      found.tensor = i;
      return found;
    }
  }
  return std::nullopt;
}

std::vector<std::string> differing_arguments(const CapturedCall& a, const CapturedCall& b) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(a.arguments.size(), b.arguments.size()); ++i) {
    if (a.arguments[i].hash != b.arguments[i].hash) names.push_back(a.arguments[i].name);
  }
  return names;
}

}  // namespace lockstep::train
