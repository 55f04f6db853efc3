#pragma once

#include "nn/module.h"

namespace lockstep::nn {

/// In training zeroes each element with probability p and divides the others by 1 - p; otherwise
/// returns its input (Srivastava et al. 2014). These throw Error unless p is in [0, 1].
class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) const;

 private:
  double p_;
};

/// Dropout of whole channels, which all positions of a channel share (Tompson et al. 2015); what
/// the classes for inputs of one to three spatial dimensions have in common. x [batch, channels,
/// spatial...], the batch optional.
class ChannelDropout : public Module {
 public:
  Tensor forward(const Tensor& x) const;

 protected:
  ChannelDropout(double p, int64_t spatial);
  ChannelDropout(ChannelDropout&&) noexcept = default;

 private:
  double p_;
  int64_t spatial_;
};

class Dropout1d : public ChannelDropout {
 public:
  explicit Dropout1d(double p = 0.5) : ChannelDropout(p, 1) {}
};

class Dropout2d : public ChannelDropout {
 public:
  explicit Dropout2d(double p = 0.5) : ChannelDropout(p, 2) {}
};

class Dropout3d : public ChannelDropout {
 public:
  explicit Dropout3d(double p = 0.5) : ChannelDropout(p, 3) {}
};

}  // namespace lockstep::nn
