#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/dispatch/schema.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// Gradients of an operator's tensor arguments in order, one per tensor (each tensor of a list has
/// its own); undefined where no gradient is needed.
using Gradients = SmallVector<Tensor, 4>;

/// Geometry of a tensor argument, kept for backward without keeping its elements.
class InputMeta {
 public:
  InputMeta() noexcept {}  // if defaulted, `InputMeta()` would zero the inline array of Dims first
  InputMeta(const InputMeta& other);
  InputMeta(InputMeta&&) noexcept = default;
  InputMeta& operator=(const InputMeta& other);
  InputMeta& operator=(InputMeta&&) noexcept = default;
  ~InputMeta() = default;

  Dims sizes;
  DType dtype = DType::kF32;
  Device device;
  bool defined = false;
  bool has_edge = false;  ///< its gradient goes somewhere

  /// In elements, as the offset is.
  Dims strides() const { return layout_ ? layout_->strides : contiguous_strides(sizes); }
  int64_t offset() const noexcept { return layout_ ? layout_->offset : 0; }
  /// Sets everything but `has_edge`.
  void describe(const TensorImpl& tensor);

 private:
  struct Layout {
    Dims strides;
    int64_t offset;
  };
  /// Null for most arguments: row-major from the start of their storage.
  std::unique_ptr<Layout> layout_;
};

/// The tensors that one node saved, as `VjpContext::take_saved` sees them.
class SavedMemory {
 public:
  virtual Tensor take(size_t i) = 0;

 protected:
  ~SavedMemory() = default;
};

/// What a derivative can access while it runs. Made for one call; not thread-safe.
class VjpContext {
 public:
  /// The i-th tensor that the block's `.saves(...)` lists.
  const Tensor& saved(size_t i) const { return saved_[i]; }
  /// The memory of the i-th saved tensor, for a result that may overwrite it: the same elements as
  /// a tensor without history, if this derivative is the last that can read them. Undefined
  /// otherwise: when the graph is retained or this backward recorded, when saved-tensor hooks keep
  /// the tensor, or when another tensor, node or stream may read its storage. Can be taken once.
  Tensor take_saved(size_t i) const { return memory_ != nullptr ? memory_->take(i) : Tensor(); }
  /// Argument `i` of the schema, which must not be a tensor.
  template <class T>
  T argument(size_t i) const {
    return FromValue<T>::get(arguments_[i]);
  }
  /// All arguments in schema order, with None for tensors. Tensor arguments at the end of the
  /// schema may be missing.
  std::span<const Value> arguments() const { return arguments_; }
  size_t saved_count() const { return saved_.size(); }
  /// Geometry of the i-th tensor argument (counting tensors only).
  const InputMeta& input(size_t i) const { return inputs_[i]; }
  IntList sizes(size_t i) const { return inputs_[i].sizes; }
  size_t input_count() const { return inputs_.size(); }
  /// Whether the i-th tensor argument's gradient is wanted.
  bool needs(size_t i) const {
    if (i >= inputs_.size()) return false;
    return i < 64 ? ((needs_ >> i) & 1) != 0 : inputs_[i].has_edge;
  }
  /// Where the i-th gradient should be written (`mm_out`); undefined: allocate it. If the
  /// derivative ignores it, the gradient is copied there, which counts as a hidden copy.
  Tensor destination(size_t i) const {
    return i < destinations_.size() ? destinations_[i] : Tensor();
  }
  /// Returns `grad` summed to the shape of the i-th tensor argument and cast to its dtype: the
  /// reverse of broadcasting and type promotion.
  Tensor unbroadcast(const Tensor& grad, size_t i) const;

  /// The pointer declared with the derivative; null for operators defined by blocks.
  void* data() const { return data_; }

  /// Takes one function per tensor argument and evaluates those with a needed gradient.
  template <class... F>
  Gradients gradients(F&&... functions) const {
    Gradients result;
    size_t i = 0;
    (result.push_back(needs(i++) ? functions() : Tensor()), ...);
    return result;
  }

  VjpContext(std::span<const Tensor> saved, std::span<const Value> arguments,
             std::span<const InputMeta> inputs, uint64_t needs,
             std::span<const Tensor> destinations, void* data = nullptr,
             SavedMemory* memory = nullptr)
      : saved_(saved),
        arguments_(arguments),
        inputs_(inputs),
        needs_(needs),
        destinations_(destinations),
        data_(data),
        memory_(memory) {}

 private:
  std::span<const Tensor> saved_;
  std::span<const Value> arguments_;
  std::span<const InputMeta> inputs_;
  uint64_t needs_;
  std::span<const Tensor> destinations_;
  void* data_;
  SavedMemory* memory_;
};

/// A derivative (vector-Jacobian product): maps the gradients of the results (undefined where none
/// arrived) to those of the arguments. Plain functions that use public operators only.
using Vjp = Gradients (*)(VjpContext&, const Tensor& grad);
using VjpOfMany = Gradients (*)(VjpContext&, std::span<const Tensor> grads);

/// A tensor that a derivative keeps from forward to backward.
struct Save {
  bool is_output = false;
  size_t index = 0;                    ///< index of the argument or result in the schema
  uint64_t needed_for = ~uint64_t{0};  ///< bit i: the gradient of tensor argument i reads it
};

/// The derivative that an operator declares.
struct Derivative {
  Vjp of_one = nullptr;  ///< used when the operator has one differentiable result
  VjpOfMany of_many = nullptr;
  SmallVector<Save, 4> saves;
  uint64_t differentiable_outputs = ~uint64_t{0};
  void* data = nullptr;                   ///< what it finds at `VjpContext::data`
  std::string not_differentiable_reason;  ///< why there is no derivative

  bool exists() const { return of_one != nullptr || of_many != nullptr; }
};

/// Parses "weight", "self for mat2" or "output0 for self, other" against a schema; "output" is
/// output 0. Throws DispatchError on unknown names.
Save parse_save(const Schema& schema, std::string_view text);

}  // namespace lockstep
