#pragma once

#include <memory>
#include <string_view>

#include "autograd/node.h"
#include "autograd/saved_tensor_hooks.h"

namespace lockstep {

/// A tensor kept from forward to backward, with the version of its storage at that time, or the
/// object that the innermost SavedTensorHooksGuard packed it into.
///
/// A result is kept without its history, since its node owns this object and that would be a
/// reference cycle. `unpack` restores the history.
class SavedTensor {
 public:
  SavedTensor() = default;
  /// Keeps an argument. An undefined tensor stays undefined.
  static SavedTensor argument(const Tensor& tensor);
  /// Keeps an argument that the operator is about to change through another tensor, so that
  /// unpacking it throws. Without its history, which may contain the node that will own this.
  static SavedTensor overwritten(const Tensor& tensor);
  /// Keeps the `output_nr`-th result of the node that will own this. Call it when the result has
  /// its history: one that requires grad gets it back on unpacking.
  static SavedTensor result(const Tensor& tensor, uint32_t output_nr);

  /// Returns the tensor. While grad mode is on, a result gets its history back: `owner` is the node
  /// that it is a result of. Throws AutogradError naming `op`, shape, dtype and both versions when
  /// the storage was changed in place since.
  Tensor unpack(std::string_view op, Node* owner) const;

  /// Gives the tensor's memory away, as a tensor of the same elements without history, if nothing
  /// else can read them: neither another tensor, view or saved tensor, nor hooks, nor work on
  /// another stream, nor an owner outside this library. This is empty then. Otherwise returns an
  /// undefined tensor and changes nothing. `unpacked` is what `unpack` returned, in one copy.
  Tensor take(const Tensor& unpacked);

  bool is_result() const noexcept { return is_result_; }
  bool defined() const noexcept { return impl_ || packed_; }
  /// Whether hooks keep the tensor; `peek` returns an undefined tensor then.
  bool is_packed() const noexcept { return packed_ != nullptr; }
  /// The tensor without check or history, for inspection of graphs.
  Tensor peek() const { return Tensor(impl_); }

 private:
  static SavedTensor without_history(const Tensor& tensor);
  void pack(const Tensor& tensor);
  Tensor unpack_packed(std::string_view op, Node* owner) const;

  Ref<TensorImpl> impl_;
  std::unique_ptr<PackedTensor> packed_;  ///< set instead of impl_
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool is_result_ = false;
  bool has_history_ = false;  ///< a result that requires grad
};

}  // namespace lockstep
