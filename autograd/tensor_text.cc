#include "autograd/tensor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {
namespace {

/// The elements that are shown, on the cpu, and the dimensions of which others are left out.
struct Shown {
  Tensor elements;
  std::vector<bool> is_cut;
};

Shown shown_of(const Tensor& tensor, const PrintOptions& options) {
  Shown shown{tensor.detach(), std::vector<bool>(static_cast<size_t>(tensor.dim()))};
  const int64_t edge = options.edge_items;
  for (int64_t dim = 0; tensor.numel() > options.threshold && dim < tensor.dim(); ++dim) {
    const int64_t size = tensor.size(dim);
    if (size <= 2 * edge) continue;
    shown.elements =
        cat({shown.elements.slice(dim, 0, edge), shown.elements.slice(dim, size - edge)}, dim);
    shown.is_cut[static_cast<size_t>(dim)] = true;
  }
  shown.elements = clone(shown.elements.to(kCPU), MemoryFormat::kContiguous);
  return shown;
}

/// The shown elements in row-major order, and the width that most of them are padded to.
struct Texts {
  std::vector<std::string> elements;
  size_t width = 1;
};

/// Numbers in the notation that suits all of them: PyTorch's rules (torch/_tensor_str.py), by which
/// zeros, infinities and NaN have no say in notation and width.
Texts texts_of(const std::vector<double>& numbers, const PrintOptions& options) {
  const auto counts = [](double number) { return std::isfinite(number) && number != 0; };
  double smallest = INFINITY, largest = 0;
  bool are_integers = true;
  for (const double number : numbers) {
    if (!counts(number)) continue;
    smallest = std::min(smallest, std::fabs(number));
    largest = std::max(largest, std::fabs(number));
    are_integers &= number == std::ceil(number);
  }
  const bool is_long =
      largest > 0 && (largest / smallest > 1000 || largest > 1e8 || smallest < 1e-4);
  const bool scientific = options.scientific.value_or(is_long);
  Texts texts;
  for (const double number : numbers) {
    std::string text = scientific ? fmt::format("{:.{}e}", number, options.precision)
                       : are_integers
                           ? fmt::format("{:.0f}{}", number, std::isfinite(number) ? "." : "")
                           : fmt::format("{:.{}f}", number, options.precision);
    if (counts(number)) texts.width = std::max(texts.width, text.size());
    texts.elements.push_back(std::move(text));
  }
  return texts;
}

Texts texts_of(const Tensor& elements, const PrintOptions& options) {
  Texts texts;
  const auto count = static_cast<size_t>(elements.numel());
  if (is_floating(elements.dtype())) {
    const Tensor wide = elements.to(DType::kF64);
    texts =
        texts_of(std::vector<double>(wide.data<double>(), wide.data<double>() + count), options);
  } else {
    const Tensor wide = elements.to(DType::kI64);
    for (size_t i = 0; i < count; ++i) {
      const int64_t number = wide.data<int64_t>()[i];
      const bool is_bool = elements.dtype() == DType::kBool;
      texts.elements.push_back(is_bool ? (number != 0 ? "True" : "False") : std::to_string(number));
      texts.width = std::max(texts.width, texts.elements.back().size());
    }
  }
  for (std::string& text : texts.elements) {
    if (text.size() < texts.width) text.insert(0, texts.width - text.size(), ' ');
  }
  return texts;
}

/// Writes nested brackets around the texts of the shown elements.
class Brackets {
 public:
  Brackets(const Shown& shown, Texts texts, const PrintOptions& options)
      : shown_(shown), texts_(std::move(texts)), options_(options) {}

  /// The part of dimension `dim` and those below that starts at the next element.
  std::string next(int64_t dim, int64_t indent) {
    const int64_t dims = shown_.elements.dim();
    if (dim == dims) return texts_.elements[place_++];
    std::vector<std::string> parts;
    for (int64_t i = 0; i < shown_.elements.size(dim); ++i) {
      if (shown_.is_cut[static_cast<size_t>(dim)] && i == options_.edge_items) {
        parts.emplace_back(dim + 1 == dims ? " ..." : "...");
      }
      parts.push_back(next(dim + 1, indent + 1));
    }
    const std::string margin(static_cast<size_t>(indent + 1), ' ');
    if (dim + 1 == dims) return "[" + lines(parts, indent, margin) + "]";
    const std::string between =
        "," + std::string(static_cast<size_t>(dims - dim - 1), '\n') + margin;
    return fmt::format("[{}]", fmt::join(parts, between));
  }

 private:
  std::string lines(const std::vector<std::string>& parts, int64_t indent,
                    const std::string& margin) const {
    const auto width = static_cast<int64_t>(texts_.width) + 2;
    const int64_t most = std::max<int64_t>(1, (options_.line_width - indent) / width);
    std::string text;
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool starts_line = i % static_cast<size_t>(most) == 0;
      if (i > 0) text += starts_line ? ",\n" + margin : ", ";
      text += parts[i];
    }
    return text;
  }

  const Shown& shown_;
  Texts texts_;
  const PrintOptions& options_;
  size_t place_ = 0;
};

std::string size_text(const Tensor& tensor) {
  return fmt::format("size=({}{})", fmt::join(tensor.sizes(), ", "), tensor.dim() == 1 ? "," : "");
}

/// What is said of a tensor besides its elements, in PyTorch's order.
std::vector<std::string> remarks_on(const Tensor& tensor, bool shows_elements) {
  std::vector<std::string> remarks;
  if (tensor.device() != kCPU)
    remarks.push_back(fmt::format("device='{}'", to_string(tensor.device())));
  const bool is_empty = tensor.numel() == 0;
  if (!shows_elements || (is_empty && tensor.dim() != 1)) remarks.push_back(size_text(tensor));
  const DType dtype = tensor.dtype();
  const bool is_told =
      shows_elements && !is_empty && (dtype == DType::kI64 || dtype == DType::kBool);
  if (dtype != DType::kF32 && !is_told)
    remarks.push_back(fmt::format("dtype={}", to_string(dtype)));
  if (const Node* node = tensor.grad_fn()) {
    remarks.push_back(fmt::format("grad_fn=<{}>", node->name()));
  } else if (tensor.requires_grad()) {
    remarks.emplace_back("requires_grad=True");
  }
  return remarks;
}

constexpr std::string_view kStart = "tensor(";

/// `text` and the remarks, on new lines where they would pass the line's width.
std::string with_remarks(std::string text, const std::vector<std::string>& remarks,
                         const PrintOptions& options) {
  const size_t line = text.rfind('\n');
  size_t used = line == std::string::npos ? kStart.size() + text.size() : text.size() - line - 1;
  used += 2;  // as in PyTorch: brackets may follow
  for (const std::string& remark : remarks) {
    const bool fits = used + remark.size() + 2 <= static_cast<size_t>(options.line_width);
    text += fits ? ", " : ",\n" + std::string(kStart.size(), ' ');
    used = (fits ? used + 2 : kStart.size()) + remark.size();
    text += remark;
  }
  return fmt::format("{}{})", kStart, text);
}

}  // namespace

std::string format_tensor(const Tensor& tensor, const PrintOptions& options) {
  if (!tensor.defined()) return "tensor(undefined)";
  const NoGradGuard no_grad;
  const bool shows_elements = tensor.device().type != DeviceType::kMeta && !tensor.impl()->batch;
  std::string text = "...";
  if (shows_elements && tensor.numel() == 0) {
    text = "[]";
  } else if (shows_elements) {
    const Shown shown = shown_of(tensor, options);
    Brackets brackets(shown, texts_of(shown.elements, options), options);
    text = brackets.next(0, static_cast<int64_t>(kStart.size()));
  }
  return with_remarks(std::move(text), remarks_on(tensor, shows_elements), options);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << format_tensor(tensor);
}
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << to_string(device); }
std::ostream& operator<<(std::ostream& out, IntList list) { return out << to_string(list); }

}  // namespace lockstep
