// Einstein summation; declared in linalg.h.

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/matmul/einsum_equation.h"
#include "core/ops/matmul/linalg.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

/// The dimensions (axes) of all operands: those of the result, then those summed over. "..." takes
/// `wide` axes.
class Axes {
 public:
  Axes(const EinsumEquation& equation, int64_t wide) : wide_(wide) {
    append(equation.result);
    kept_ = count_;
    for (const EinsumLetters& letters : equation.operands) {
      for (const char letter : letters) {
        if (letters_.find(letter) == std::string::npos) append(std::string(1, letter));
      }
    }
  }
  int64_t count() const { return count_; }
  /// Number of axes of the result, which come first.
  int64_t kept() const { return kept_; }
  /// The axis of a letter; for "..." the first of its axes.
  int64_t place(char letter) const { return places_[letters_.find(letter)]; }
  int64_t wide() const { return wide_; }

 private:
  void append(const EinsumLetters& letters) {
    for (const char letter : letters) {
      letters_.push_back(letter);
      places_.push_back(count_);
      count_ += letter == kEinsumEllipsis ? wide_ : 1;
    }
  }
  int64_t wide_;
  int64_t count_ = 0;
  int64_t kept_ = 0;
  EinsumLetters letters_;
  std::vector<int64_t> places_;
};

/// Takes the diagonal of dimensions with the same letter and updates `letters` accordingly.
Tensor take_diagonals(Tensor operand, EinsumLetters& letters) {
  const auto dim_of = [&](size_t i) {  // "..." before a letter takes several dimensions
    const size_t dots = letters.find(kEinsumEllipsis);
    const int64_t extra = operand.dim() - static_cast<int64_t>(letters.size());
    return static_cast<int64_t>(i) + (dots < i ? extra : 0);
  };
  for (size_t i = 0; i < letters.size();) {
    const size_t again = letters.find(letters[i], i + 1);
    if (again == std::string::npos) {
      ++i;
      continue;
    }
    const int64_t a = dim_of(i), b = dim_of(again);
    LS_CHECK(operand.size(a) == operand.size(b), ShapeError,
             "[einsum] '{}' repeats in an operand, but its sizes differ: {} and {}.", letters[i],
             operand.size(a), operand.size(b));
    operand = diagonal(operand, 0, a, b);  // becomes the last dimension
    const char letter = letters[i];
    letters.erase(again, 1);
    letters.erase(i, 1);
    letters.push_back(letter);
  }
  return operand;
}

/// Permutes `tensor` to one dimension per axis, of size 1 for axes that it lacks.
Tensor align(const Tensor& tensor, EinsumLetters letters, const Axes& axes) {
  const Tensor operand = take_diagonals(tensor, letters);
  const int64_t own = operand.dim() - (static_cast<int64_t>(letters.size()) -
                                       std::count(letters.begin(), letters.end(), kEinsumEllipsis));
  std::vector<int64_t> source(static_cast<size_t>(axes.count()), -1);
  int64_t dim = 0;
  for (const char letter : letters) {
    const int64_t width = letter == kEinsumEllipsis ? own : 1;
    // The dimensions of a shorter "..." are the last ones, as in broadcasting.
    int64_t place = axes.place(letter) + (letter == kEinsumEllipsis ? axes.wide() - own : 0);
    for (int64_t i = 0; i < width; ++i) source[static_cast<size_t>(place++)] = dim++;
  }
  Dims order;
  for (const int64_t from : source) {
    if (from >= 0) order.push_back(from);
  }
  Tensor result = operand.permute(order);
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] < 0) result = result.unsqueeze(static_cast<int64_t>(i));
  }
  return result;
}

/// Throws ShapeError unless the sizes of the operands agree, or are 1, on each axis.
void check_sizes(const std::vector<Tensor>& operands) {
  Dims sizes = to_dims(operands[0].sizes());
  for (const Tensor& operand : operands) sizes = broadcast("einsum", sizes, operand.sizes());
}

int64_t product_of(const Tensor& tensor, const Dims& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= tensor.size(dim);
  return product;
}

Dims joined(std::initializer_list<const Dims*> parts) {
  Dims all;
  for (const Dims* part : parts) {
    for (const int64_t dim : *part) all.push_back(dim);
  }
  return all;
}

/// The product of two operands summed over the axes `summed`, which have size 1 in the result.
/// Computed as a batched matrix product.
Tensor contract(Tensor left, Tensor right, const Dims& summed) {
  Dims inner, batch, rows, columns;
  for (const int64_t dim : summed) {
    if (left.size(dim) != 1 && right.size(dim) != 1) {
      inner.push_back(dim);
    } else if (left.size(dim) != 1) {
      left = left.sum({dim}, true);
    } else if (right.size(dim) != 1) {
      right = right.sum({dim}, true);
    }
  }
  if (inner.empty()) return left * right;
  Dims ones;
  for (int64_t dim = 0; dim < left.dim(); ++dim) {
    if (std::find(inner.begin(), inner.end(), dim) != inner.end()) continue;
    const bool in_left = left.size(dim) != 1, in_right = right.size(dim) != 1;
    (in_left && in_right ? batch : in_left ? rows : in_right ? columns : ones).push_back(dim);
  }
  const int64_t b = product_of(left, batch), n = product_of(left, rows);
  const int64_t k = product_of(left, inner), m = product_of(right, columns);
  const Tensor product =
      bmm(left.permute(joined({&batch, &rows, &inner, &columns, &ones})).reshape({b, n, k}),
          right.permute(joined({&batch, &inner, &columns, &rows, &ones})).reshape({b, k, m}));

  const Dims order = joined({&batch, &rows, &columns, &inner, &ones});
  Dims sizes, back(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    const bool from_left = i < batch.size() + rows.size();
    const bool from_right = !from_left && i < batch.size() + rows.size() + columns.size();
    sizes.push_back(from_left ? left.size(order[i]) : from_right ? right.size(order[i]) : 1);
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return product.reshape(sizes).permute(back);
}

/// The axes to sum over in a product of two operands: those that neither the result nor `others`
/// have.
Dims finished_axes(const Axes& axes, const std::vector<Tensor>& others) {
  Dims finished;
  for (int64_t axis = axes.kept(); axis < axes.count(); ++axis) {
    const bool needed = std::any_of(others.begin(), others.end(),
                                    [axis](const Tensor& other) { return other.size(axis) != 1; });
    if (!needed) finished.push_back(axis);
  }
  return finished;
}

Tensor take_at(std::vector<Tensor>& operands, int64_t place) {
  LS_CHECK(place >= 0 && place < static_cast<int64_t>(operands.size()), IndexError,
           "[einsum] the path leaves the operands: expected a position in [0, {}), got {}.",
           operands.size(), place);
  Tensor taken = operands[static_cast<size_t>(place)];
  operands.erase(operands.begin() + place);
  return taken;
}

Tensor einsum_body(std::string_view text, TensorList tensors, std::optional<IntList> path) {
  const EinsumEquation equation = parse_einsum(text);
  LS_CHECK(!tensors.empty() && equation.operands.size() == tensors.size(), ShapeError,
           "[einsum] \"{}\" has {} operands, but {} tensors were given.", text,
           equation.operands.size(), tensors.size());
  int64_t wide = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const EinsumLetters& letters = equation.operands[i];
    const bool open = letters.find(kEinsumEllipsis) != std::string::npos;
    const int64_t own = tensors[i].dim() - static_cast<int64_t>(letters.size()) + (open ? 1 : 0);
    LS_CHECK(own == 0 || (open && own > 0), ShapeError,
             "[einsum] operand {} of \"{}\" does not fit: it has {} letters{}, got shape {}.", i,
             text, letters.size() - (open ? 1 : 0), open ? " and \"...\"" : "", tensors[i].shape());
    wide = std::max(wide, own);
  }
  const Axes axes(equation, wide);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < tensors.size(); ++i) {
    operands.push_back(align(tensors[i], equation.operands[i], axes));
  }
  check_sizes(operands);

  LS_CHECK(!path || path->size() == 2 * (operands.size() - 1), ShapeError,
           "[einsum] a path over {} operands has {} positions, got {}.", tensors.size(),
           2 * (operands.size() - 1), path->size());
  for (size_t step = 0; operands.size() > 1; ++step) {
    const int64_t first = path ? (*path)[2 * step] : 0;
    const int64_t second = path ? (*path)[2 * step + 1] : 1;
    const Tensor right = take_at(operands, std::max(first, second));
    const Tensor left = take_at(operands, std::min(first, second));
    const Tensor product = contract(left, right, finished_axes(axes, operands));
    operands.insert(path ? operands.end() : operands.begin(), product);
  }

  Tensor result = operands[0];
  Dims rest;
  for (int64_t axis = axes.kept(); axis < axes.count(); ++axis) rest.push_back(axis);
  if (rest.empty()) return result;
  if (tensors.size() == 1) return result.sum(rest);
  for (size_t i = rest.size(); i-- > 0;) result = result.squeeze(rest[i]);
  return result;
}

}  // namespace

LS_OP(einsum, Tensor(std::string_view, TensorList, std::optional<IntList>),
      "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor")
    .doc("Einstein summation: sum of products of elements, with letters that name dimensions.")
    .autocast(Autocast::kLowerPrecision)
    .composite(einsum_body);
Tensor einsum(std::string_view equation, TensorList tensors, std::optional<IntList> path) {
  return op_einsum(equation, tensors, path);
}

}  // namespace lockstep
