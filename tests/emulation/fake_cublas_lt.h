#pragma once

// Without cublasLt.h, whose vector types are those of tests/emulation/vector_types.h.

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::cuda {

class CublasLtLibrary;

/// What the fake library was asked, and how it answers. There is one of it; it is for one thread at
/// a time.
struct FakeCublasLtBooks {
  int advised = 0;                  ///< times that an algorithm was asked for
  int products = 0;                 ///< queued
  uint32_t reduction_schemes = 0;   ///< allowed the last time
  uint32_t epilogue = 0;            ///< of the last product, as cublasLtEpilogue_t has it
  double beta = 0;                  ///< of the last product
  std::vector<std::string> misuse;  ///< what it refused, and why

  bool knows_bias = true;      ///< else it has no algorithm with a bias
  bool knows_gelu = true;      ///< else none with a gelu or its slope
  bool knows_anything = true;  ///< else it has none at all
  bool can_create = true;      ///< else a handle is refused, as by a driver that is too old
};
FakeCublasLtBooks& fake_cublas_lt_books();

/// From now on `cublas_lt()` is a cuBLASLt by plain loops on the cpu, for devices whose memory is
/// the cpu's and whose driver runs host functions in the order of their stream. It refuses
/// descriptors, addresses and workspaces that the library would refuse or misread, and algorithms
/// of another problem.
void install_fake_cublas_lt();

/// While alive, `cublas_lt()` is another one.
class CublasLtScope {
 public:
  enum class Library { kFake, kMissing };

  /// A fake library begins with empty books and without a handle.
  explicit CublasLtScope(Library library);
  ~CublasLtScope();
  CublasLtScope(const CublasLtScope&) = delete;
  CublasLtScope& operator=(const CublasLtScope&) = delete;

 private:
  CublasLtLibrary& before_;
};

}  // namespace lockstep::cuda
