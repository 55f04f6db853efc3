#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/content_hash.h"
#include "train/watch/operator_watch.h"

namespace lockstep::train {

/// An argument of a call before it was made.
struct CapturedArgument {
  std::string name;  ///< in the operator's schema
  ContentHash hash;  ///< of tensors' bits, or of a number's text
};

/// One call with all that went in and came out.
struct CapturedCall {
  std::vector<CapturedArgument> arguments;  ///< those that it reads
  std::vector<Tensor> written;              ///< copies on the cpu, row-major
};

/// Keeps one call of a step: number `call`, from 0, of those of `part`.
class CallCapture final : public OperatorWatch {
 public:
  CallCapture(StepPart part, size_t call) : wanted_(part), call_(call) {}

  /// Nothing if there was no such call.
  const std::optional<CapturedCall>& captured() const { return captured_; }

 private:
  bool is_wanted(const Call& call) const { return part() == wanted_ && call.number == call_; }
  void before(const Call& call, const Stack& stack) override;
  void after(const Call& call, const std::vector<Tensor>& written) override;

  StepPart wanted_;
  size_t call_;
  std::optional<CapturedCall> captured_;
};

/// Copies on the cpu, row-major.
std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors);

/// The first element in which two results of one call differ, and how many do.
struct ElementDifference {
  size_t tensor = 0;           ///< of those that the call writes
  std::string type;            ///< "float32[8, 16]"
  int64_t element = 0;         ///< in row-major order
  std::vector<int64_t> index;  ///< the same by dimension
  std::string a;               ///< value and bits: "0.25 (0x3e800000)"
  std::string b;
  int64_t differing = 0;  ///< elements of the tensor that differ
  int64_t elements = 0;   ///< of the tensor
};
/// Compares bits. Returns nothing if they are the same; tensors of other sizes or dtypes are told
/// as texts, without an element.
std::optional<ElementDifference> first_differing_element(const std::vector<Tensor>& a,
                                                         const std::vector<Tensor>& b);

/// Both values of one element of two tensors of one type, and how many of their elements differ.
ElementDifference describe_element(const Tensor& a, const Tensor& b, int64_t element);

/// Names of the arguments that differ between two captures of one call.
std::vector<std::string> differing_arguments(const CapturedCall& a, const CapturedCall& b);

}  // namespace lockstep::train
