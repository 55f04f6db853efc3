#include "profile/operator_recorder.h"

#include <algorithm>
#include <array>

#include "autograd/meta.h"
#include "core/base/spans/span_recorder.h"
#include "core/dispatch/op_counter.h"
#include "core/dispatch/value_tensors.h"
#include "profile/argument_record.h"

namespace lockstep::profile {

namespace {

/// What a call's shapes may take; a few lists of parameters fit.
constexpr size_t kMostDetails = 4096;

uint64_t sequence_of(const Tensor& tensor) {
  const Meta* const meta = find_meta(tensor);
  return meta != nullptr && meta->grad_fn ? meta->grad_fn->sequence() : 0;
}

uint64_t newest_sequence(std::span<const Value> values) {
  uint64_t newest = 0;
  for (const Value& value : values) {
    each_defined_tensor(
        value, [&](const Tensor& tensor) { newest = std::max(newest, sequence_of(tensor)); });
  }
  return newest;
}

std::span<const Value> results_of(const Stack& call) {
  return {call.results().data(), call.results().size()};
}

/// The dtype that a call computes in: of its first result or, without one, of its first argument.
DType dtype_of(const Stack& call) {
  DType dtype = DType::kF32;
  bool found = false;
  const auto see = [&](std::span<const Value> values) {
    for (const Value& value : values) {
      each_defined_tensor(value, [&](const Tensor& tensor) {
        if (!std::exchange(found, true)) dtype = tensor.dtype();
      });
    }
  };
  see(results_of(call));
  see(call.arguments());
  return dtype;
}

}  // namespace

void OperatorRecorder::enter(const Operator& op, KeySet, const Stack& call) {
  SpanBuffer* const buffer = SpanBuffer::of_this_thread();
  if (buffer == nullptr) return;
  std::array<char, kMostDetails> details;
  const size_t bytes = write_arguments(call.arguments(), details);
  const uint64_t before = newest_sequence(call.arguments());
  SpanRecord* const record = buffer->begin(SpanKind::kOperator, op.name(), {details.data(), bytes});
  if (record != nullptr) record->sequence = before;
}

void OperatorRecorder::exit(const Operator& op, const Stack& call) noexcept {
  SpanBuffer* const buffer = SpanBuffer::last_of_this_thread();
  if (buffer == nullptr) return;
  if (SpanRecord* const record = buffer->innermost()) {
    const bool has_thrown = call.results().empty() && !op.schema().returns.empty();
    // A composite's work is that of the calls inside it.
    if (!has_thrown && op.kind() != OpKind::kComposite) {
      const OpCount count = count_call(op, call);
      record->flops = count.flops;
      record->bytes = count.bytes;
    }
    record->dtype = static_cast<uint8_t>(dtype_of(call));
    const uint64_t after = newest_sequence(results_of(call));
    record->sequence = after > record->sequence ? after : 0;
  }
  buffer->end();
}

}  // namespace lockstep::profile
