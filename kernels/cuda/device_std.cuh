// What functors and kernels use of the C++ library, for the compiler that is a library (NVRTC),
// which has no headers. It stands for each of these: <cmath>, <cstdint>, <type_traits>, and so on.
#ifndef LS_DEVICE_STD
#define LS_DEVICE_STD

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;

namespace std {

using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;
template <class A, class B>
concept same_as = is_same_v<A, B> && is_same_v<B, A>;

template <bool which, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool which, class A, class B>
using conditional_t = typename conditional<which, A, B>::type;

template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
inline constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, char> || is_same_v<T, int8_t> || is_same_v<T, int16_t> ||
    is_same_v<T, int32_t> || is_same_v<T, int64_t> || is_same_v<T, uint8_t> ||
    is_same_v<T, uint16_t> || is_same_v<T, uint32_t> || is_same_v<T, uint64_t>;
template <class T>
inline constexpr bool is_empty_v = __is_empty(T);

template <class T>
struct make_unsigned;
template <>
struct make_unsigned<int8_t> {
  using type = uint8_t;
};
template <>
struct make_unsigned<int16_t> {
  using type = uint16_t;
};
template <>
struct make_unsigned<int32_t> {
  using type = uint32_t;
};
template <>
struct make_unsigned<int64_t> {
  using type = uint64_t;
};
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

template <class T>
struct numeric_limits;
template <>
struct numeric_limits<float> {
  static constexpr float infinity() { return bit_cast<float>(0x7f800000); }
  static constexpr float quiet_NaN() { return bit_cast<float>(0x7fc00000); }
  static constexpr float min() { return 0x1p-126F; }
  static constexpr float max() { return 0x1.fffffep127F; }
  static constexpr float lowest() { return -max(); }
};
template <>
struct numeric_limits<double> {
  static constexpr double infinity() { return bit_cast<double>(0x7ff0000000000000); }
  static constexpr double quiet_NaN() { return bit_cast<double>(0x7ff8000000000000); }
  static constexpr double min() { return 0x1p-1022; }
  static constexpr double max() { return 0x1.fffffffffffffp1023; }
  static constexpr double lowest() { return -max(); }
};
template <>
struct numeric_limits<int64_t> {
  static constexpr int64_t min() { return -max() - 1; }
  static constexpr int64_t lowest() { return min(); }
  static constexpr int64_t max() { return 0x7fffffffffffffff; }
};

using ::memcpy;

using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::floor;
using ::fma;
using ::fmod;
using ::hypot;
using ::isinf;
using ::isnan;
using ::lgamma;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::nearbyint;
using ::nextafter;
using ::pow;
using ::signbit;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;

template <class T, size_t count>
struct array {
  T elements[count];
  constexpr T& operator[](size_t i) { return elements[i]; }
  constexpr const T& operator[](size_t i) const { return elements[i]; }
};

/// Enough for the names of functors.
class string_view {
 public:
  constexpr string_view(const char* text) : begin_(text), size_(0) {
    while (text[size_] != 0) ++size_;
  }
  constexpr string_view(const char* text, size_t size) : begin_(text), size_(size) {}
  constexpr const char* begin() const { return begin_; }
  constexpr const char* end() const { return begin_ + size_; }

 private:
  const char* begin_;
  size_t size_;
};
/// Functions that have these are declared, and never called.
struct string {
  explicit string(string_view);
};
template <class T>
class optional;

}  // namespace std

#endif
