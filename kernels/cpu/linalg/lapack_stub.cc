// Compiled instead of lapack.cc if LAPACK is not found or disabled: operators that factorize
// matrices then throw.

#include "core/base/error.h"
#include "kernels/cpu/linalg/lapack.h"

namespace lockstep::cpu::lapack {

namespace {

[[noreturn]] void fail() {
  throw Error(
      "[lapack] this build has no LAPACK, which factorizes matrices: expected LOCKSTEP_WITH_LAPACK "
      "and the package liblapack-dev. Install it and build again.");
}

}  // namespace

int32_t cholesky(bool, int64_t, double*) { fail(); }
int32_t lu(int64_t, int64_t, double*, int32_t*) { fail(); }
void solve_lu(bool, int64_t, int64_t, const double*, const int32_t*, double*) { fail(); }
void inverse_lu(int64_t, double*, const int32_t*) { fail(); }
void solve_triangular(const Triangle&, int64_t, int64_t, const double*, double*) { fail(); }
void qr(int64_t, int64_t, double*, double*) { fail(); }
void householder_product(int64_t, int64_t, int64_t, double*, const double*) { fail(); }
int32_t eigh(bool, bool, int64_t, double*, double*) { fail(); }
int32_t svd(SingularVectors, int64_t, int64_t, double*, double*, double*, double*) { fail(); }
void product(int64_t, int64_t, int64_t, const double*, const double*, double*) { fail(); }

}  // namespace lockstep::cpu::lapack
