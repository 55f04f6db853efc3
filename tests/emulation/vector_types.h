#pragma once

// CUDA's vector types, in the global namespace as in CUDA.

// NOLINTBEGIN: the names are CUDA's.
#define LS_VECTOR2(name, T, bytes) \
  struct alignas(bytes) name {     \
    T x, y;                        \
  };                               \
  constexpr name make_##name(T x, T y) { return {x, y}; }
#define LS_VECTOR4(name, T, bytes) \
  struct alignas(bytes) name {     \
    T x, y, z, w;                  \
  };                               \
  constexpr name make_##name(T x, T y, T z, T w) { return {x, y, z, w}; }

LS_VECTOR2(char2, signed char, 2)
LS_VECTOR2(uchar2, unsigned char, 2)
LS_VECTOR2(short2, short, 4)
LS_VECTOR2(ushort2, unsigned short, 4)
LS_VECTOR2(int2, int, 8)
LS_VECTOR2(uint2, unsigned, 8)
LS_VECTOR2(longlong2, long long, 16)
LS_VECTOR2(ulonglong2, unsigned long long, 16)
LS_VECTOR2(float2, float, 8)
LS_VECTOR2(double2, double, 16)
LS_VECTOR4(char4, signed char, 4)
LS_VECTOR4(uchar4, unsigned char, 4)
LS_VECTOR4(short4, short, 8)
LS_VECTOR4(ushort4, unsigned short, 8)
LS_VECTOR4(int4, int, 16)
LS_VECTOR4(uint4, unsigned, 16)
LS_VECTOR4(float4, float, 16)
#undef LS_VECTOR2
#undef LS_VECTOR4

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
// NOLINTEND
