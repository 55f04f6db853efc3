#include "train/watch/bit_flipper.h"

#include <fmt/ranges.h>

#include "core/base/check.h"
#include "core/dispatch/dispatcher.h"

namespace lockstep::train {

BitFlipper::BitFlipper(config::BitFlip flip) : flip_(std::move(flip)) {
  try {
    (void)dispatcher().find(flip_.operator_name);
  } catch (const DispatchError& error) {
    // An operator may exist with overloads alone, by which names in faults do not distinguish.
    for (const Operator* const each : dispatcher().operators()) {
      if (each->name() == flip_.operator_name) return;
    }
    throw ConfigError(fmt::format("[inject.flip] operator: {}", error.what()));
  }
}

void BitFlipper::begin_part() {
  require_done();
  if (part().step + 1 == flip_.step && part().micro_batch == flip_.micro_batch) missing_.emplace();
}

void BitFlipper::end_step() { require_done(); }

void BitFlipper::require_done() {
  if (!missing_) return;
  std::vector<std::string> found;
  for (const auto& [name, count] : *missing_) found.push_back(fmt::format("{} ({})", name, count));
  throw ConfigError(
      fmt::format("[inject.flip] the part of step {} has no call {} of {}: expected one of these "
                  "operators, with no more than so many calls: {}.",
                  flip_.step, flip_.call, flip_.operator_name, fmt::join(found, ", ")));
}

void BitFlipper::after(const Call& call, const std::vector<Tensor>& written) {
  if (!missing_) return;
  missing_ = counts();
  if (call.call != flip_.call || call.op.name() != flip_.operator_name) return;
  LS_CHECK(flip_.result < std::ssize(written), ConfigError,
           "[inject.flip] result is {}: expected one of the {} tensors that this call of {} "
           "writes, from 0.",
           flip_.result, written.size(), call.op.name());
  apply(written[static_cast<size_t>(flip_.result)]);
  missing_.reset();
}

void BitFlipper::apply(const Tensor& tensor) const {
  const auto width = static_cast<int64_t>(size_of(tensor.dtype()));
  LS_CHECK(flip_.element < tensor.numel() && flip_.bit < 8 * width, ConfigError,
           "[inject.flip] element {}, bit {}: expected an element below {} and a bit below {} of "
           "what this call of {} writes.",
           flip_.element, flip_.bit, tensor.numel(), 8 * width, flip_.operator_name);
  const Tensor plain = tensor.detach();
  // Bytes are changed where they can be reached, in elements that lie in row-major order.
  const Tensor here = plain.to(kCPU).contiguous();
  auto* const bytes = static_cast<unsigned char*>(here.data()) + flip_.element * width;
  bytes[flip_.bit / 8] ^= static_cast<unsigned char>(1 << (flip_.bit % 8));
  // Of a tensor that can be reached and is in that order, `here` is the tensor itself.
  if (!here.is_same(plain)) (void)plain.copy_(here);
}

}  // namespace lockstep::train
