#pragma once

#include <cstdint>
#include <initializer_list>

#include "nn/conv_layers.h"

namespace lockstep::nn {

/// Pads the last dimensions of x [batch, channels, spatial...], the batch optional
/// (core/ops/image/pad.h); what layers for one to three dimensions have in common. The padding is
/// one number for all sides, or a pair for each dimension, before and after, the last dimension
/// first: {left, right, top, bottom}.
class Padding : public Module {
 public:
  Tensor forward(const Tensor& x) const;

 protected:
  /// Throws ShapeError unless there is one number, or a pair for each of `spatial` dimensions.
  Padding(size_t spatial, std::initializer_list<int64_t> padding, PaddingMode mode,
          double value = 0);
  Padding(Padding&&) noexcept = default;

 private:
  Dims pairs_;
  PaddingMode mode_;
  double value_;
};

// Pads with `value`; negative paddings cut elements off.

class ConstantPad1d : public Padding {
 public:
  ConstantPad1d(std::initializer_list<int64_t> padding, double value)
      : Padding(1, padding, PaddingMode::kZeros, value) {}
  ConstantPad1d(int64_t padding, double value) : ConstantPad1d({padding}, value) {}
};

class ConstantPad2d : public Padding {
 public:
  ConstantPad2d(std::initializer_list<int64_t> padding, double value)
      : Padding(2, padding, PaddingMode::kZeros, value) {}
  ConstantPad2d(int64_t padding, double value) : ConstantPad2d({padding}, value) {}
};

class ConstantPad3d : public Padding {
 public:
  ConstantPad3d(std::initializer_list<int64_t> padding, double value)
      : Padding(3, padding, PaddingMode::kZeros, value) {}
  ConstantPad3d(int64_t padding, double value) : ConstantPad3d({padding}, value) {}
};

// Pads with 0; negative paddings cut elements off.

class ZeroPad1d : public Padding {
 public:
  ZeroPad1d(std::initializer_list<int64_t> padding) : Padding(1, padding, PaddingMode::kZeros) {}
  explicit ZeroPad1d(int64_t padding) : ZeroPad1d({padding}) {}
};

class ZeroPad2d : public Padding {
 public:
  ZeroPad2d(std::initializer_list<int64_t> padding) : Padding(2, padding, PaddingMode::kZeros) {}
  explicit ZeroPad2d(int64_t padding) : ZeroPad2d({padding}) {}
};

class ZeroPad3d : public Padding {
 public:
  ZeroPad3d(std::initializer_list<int64_t> padding) : Padding(3, padding, PaddingMode::kZeros) {}
  explicit ZeroPad3d(int64_t padding) : ZeroPad3d({padding}) {}
};

// Pads with the input mirrored at its borders, which are not repeated.

class ReflectionPad1d : public Padding {
 public:
  ReflectionPad1d(std::initializer_list<int64_t> padding)
      : Padding(1, padding, PaddingMode::kReflect) {}
  explicit ReflectionPad1d(int64_t padding) : ReflectionPad1d({padding}) {}
};

class ReflectionPad2d : public Padding {
 public:
  ReflectionPad2d(std::initializer_list<int64_t> padding)
      : Padding(2, padding, PaddingMode::kReflect) {}
  explicit ReflectionPad2d(int64_t padding) : ReflectionPad2d({padding}) {}
};

class ReflectionPad3d : public Padding {
 public:
  ReflectionPad3d(std::initializer_list<int64_t> padding)
      : Padding(3, padding, PaddingMode::kReflect) {}
  explicit ReflectionPad3d(int64_t padding) : ReflectionPad3d({padding}) {}
};

// Pads by repeating the borders.

class ReplicationPad1d : public Padding {
 public:
  ReplicationPad1d(std::initializer_list<int64_t> padding)
      : Padding(1, padding, PaddingMode::kReplicate) {}
  explicit ReplicationPad1d(int64_t padding) : ReplicationPad1d({padding}) {}
};

class ReplicationPad2d : public Padding {
 public:
  ReplicationPad2d(std::initializer_list<int64_t> padding)
      : Padding(2, padding, PaddingMode::kReplicate) {}
  explicit ReplicationPad2d(int64_t padding) : ReplicationPad2d({padding}) {}
};

class ReplicationPad3d : public Padding {
 public:
  ReplicationPad3d(std::initializer_list<int64_t> padding)
      : Padding(3, padding, PaddingMode::kReplicate) {}
  explicit ReplicationPad3d(int64_t padding) : ReplicationPad3d({padding}) {}
};

// Pads with the other end of the input; paddings are at least 0.

class CircularPad1d : public Padding {
 public:
  CircularPad1d(std::initializer_list<int64_t> padding)
      : Padding(1, padding, PaddingMode::kCircular) {}
  explicit CircularPad1d(int64_t padding) : CircularPad1d({padding}) {}
};

class CircularPad2d : public Padding {
 public:
  CircularPad2d(std::initializer_list<int64_t> padding)
      : Padding(2, padding, PaddingMode::kCircular) {}
  explicit CircularPad2d(int64_t padding) : CircularPad2d({padding}) {}
};

class CircularPad3d : public Padding {
 public:
  CircularPad3d(std::initializer_list<int64_t> padding)
      : Padding(3, padding, PaddingMode::kCircular) {}
  explicit CircularPad3d(int64_t padding) : CircularPad3d({padding}) {}
};

}  // namespace lockstep::nn
