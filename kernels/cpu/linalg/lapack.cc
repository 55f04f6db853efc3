#include "kernels/cpu/linalg/lapack.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/device/arithmetic_facts.h"

// Fortran passes every argument by address, and the lengths of texts by value at the end. The
// library's own header (lapacke.h) is another package, so its routines are declared here.
extern "C" {
using fortran_int = int;
using text_length = size_t;
void ilaver_(fortran_int*, fortran_int*, fortran_int*);
void dpotrf_(const char*, const fortran_int*, double*, const fortran_int*, fortran_int*,
             text_length);
void dgetrf_(const fortran_int*, const fortran_int*, double*, const fortran_int*, fortran_int*,
             fortran_int*);
void dgetrs_(const char*, const fortran_int*, const fortran_int*, const double*, const fortran_int*,
             const fortran_int*, double*, const fortran_int*, fortran_int*, text_length);
void dgetri_(const fortran_int*, double*, const fortran_int*, const fortran_int*, double*,
             const fortran_int*, fortran_int*);
void dtrsm_(const char*, const char*, const char*, const char*, const fortran_int*,
            const fortran_int*, const double*, const double*, const fortran_int*, double*,
            const fortran_int*, text_length, text_length, text_length, text_length);
void dgeqrf_(const fortran_int*, const fortran_int*, double*, const fortran_int*, double*, double*,
             const fortran_int*, fortran_int*);
void dorgqr_(const fortran_int*, const fortran_int*, const fortran_int*, double*,
             const fortran_int*, const double*, double*, const fortran_int*, fortran_int*);
void dsyevd_(const char*, const char*, const fortran_int*, double*, const fortran_int*, double*,
             double*, const fortran_int*, fortran_int*, const fortran_int*, fortran_int*,
             text_length, text_length);
void dgesdd_(const char*, const fortran_int*, const fortran_int*, double*, const fortran_int*,
             double*, double*, const fortran_int*, double*, const fortran_int*, double*,
             const fortran_int*, fortran_int*, fortran_int*, text_length);
void dgemm_(const char*, const char*, const fortran_int*, const fortran_int*, const fortran_int*,
            const double*, const double*, const fortran_int*, const double*, const fortran_int*,
            const double*, double*, const fortran_int*, text_length, text_length);
}

namespace lockstep::cpu::lapack {

namespace {

std::string version() {
  fortran_int major = 0, minor = 0, patch = 0;
  ilaver_(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

[[maybe_unused]] const bool kRegistered = register_arithmetic_fact("LAPACK", version);

fortran_int as_int(int64_t size) {
  LS_CHECK(size <= std::numeric_limits<fortran_int>::max(), Error,
           "[lapack] a matrix is too large: expected sizes of at most {}, got {}.",
           std::numeric_limits<fortran_int>::max(), size);
  return static_cast<fortran_int>(size);
}

/// The distance between columns of `rows` elements, which LAPACK wants to be positive.
fortran_int leading(int64_t rows) { return as_int(std::max<int64_t>(rows, 1)); }

/// A routine refuses an argument with a negative number, which would be an error of this file.
void check_arguments(fortran_int info) { LS_ASSERT(info >= 0); }

/// Calls a routine twice: it first says how much memory it wants, and then works in that.
template <class Routine>
void with_memory(const Routine& routine) {
  double wanted = 0;
  const fortran_int query = -1;
  routine(&wanted, &query);
  const fortran_int size = std::max(as_int(static_cast<int64_t>(wanted)), 1);
  std::vector<double> memory(static_cast<size_t>(size));
  routine(memory.data(), &size);
}

}  // namespace

int32_t cholesky(bool upper, int64_t n, double* a) {
  if (n == 0) return 0;
  const fortran_int size = as_int(n);
  fortran_int info = 0;
  dpotrf_(upper ? "U" : "L", &size, a, &size, &info, 1);
  check_arguments(info);
  return info;
}

int32_t lu(int64_t m, int64_t n, double* a, int32_t* pivots) {
  if (m == 0 || n == 0) return 0;
  const fortran_int rows = as_int(m), columns = as_int(n);
  fortran_int info = 0;
  dgetrf_(&rows, &columns, a, &rows, pivots, &info);
  check_arguments(info);
  return info;
}

void solve_lu(bool transposed, int64_t n, int64_t k, const double* a, const int32_t* pivots,
              double* b) {
  if (n == 0 || k == 0) return;
  const fortran_int size = as_int(n), columns = as_int(k);
  fortran_int info = 0;
  dgetrs_(transposed ? "T" : "N", &size, &columns, a, &size, pivots, b, &size, &info, 1);
  check_arguments(info);
}

void inverse_lu(int64_t n, double* a, const int32_t* pivots) {
  if (n == 0) return;
  const fortran_int size = as_int(n);
  with_memory([&](double* memory, const fortran_int* length) {
    fortran_int info = 0;
    dgetri_(&size, a, &size, pivots, memory, length, &info);
    check_arguments(info);
  });
}

void solve_triangular(const Triangle& triangle, int64_t m, int64_t k, const double* a, double* b) {
  if (m == 0 || k == 0) return;
  const fortran_int rows = as_int(m), columns = as_int(k);
  const fortran_int size = triangle.left ? rows : columns;
  const double one = 1;
  dtrsm_(triangle.left ? "L" : "R", triangle.upper ? "U" : "L", triangle.transposed ? "T" : "N",
         triangle.unit ? "U" : "N", &rows, &columns, &one, a, &size, b, &rows, 1, 1, 1, 1);
}

void qr(int64_t m, int64_t n, double* a, double* tau) {
  if (m == 0 || n == 0) return;
  const fortran_int rows = as_int(m), columns = as_int(n);
  with_memory([&](double* memory, const fortran_int* length) {
    fortran_int info = 0;
    dgeqrf_(&rows, &columns, a, &rows, tau, memory, length, &info);
    check_arguments(info);
  });
}

void householder_product(int64_t m, int64_t columns, int64_t count, double* a, const double* tau) {
  if (m == 0 || columns == 0) return;
  const fortran_int rows = as_int(m), width = as_int(columns), vectors = as_int(count);
  with_memory([&](double* memory, const fortran_int* length) {
    fortran_int info = 0;
    dorgqr_(&rows, &width, &vectors, a, &rows, tau, memory, length, &info);
    check_arguments(info);
  });
}

int32_t eigh(bool vectors, bool upper, int64_t n, double* a, double* values) {
  if (n == 0) return 0;
  const fortran_int size = as_int(n);
  const char* job = vectors ? "V" : "N";
  const char* triangle = upper ? "U" : "L";
  fortran_int info = 0, wanted_integers = 0;
  const fortran_int query = -1;
  double wanted = 0;
  dsyevd_(job, triangle, &size, a, &size, values, &wanted, &query, &wanted_integers, &query, &info,
          1, 1);
  check_arguments(info);
  const fortran_int length = as_int(static_cast<int64_t>(wanted));
  std::vector<double> memory(static_cast<size_t>(length));
  std::vector<fortran_int> integers(static_cast<size_t>(wanted_integers));
  dsyevd_(job, triangle, &size, a, &size, values, memory.data(), &length, integers.data(),
          &wanted_integers, &info, 1, 1);
  check_arguments(info);
  return info;
}

int32_t svd(SingularVectors vectors, int64_t m, int64_t n, double* a, double* values, double* u,
            double* vt) {
  const int64_t k = std::min(m, n);
  if (k == 0) return 0;
  const fortran_int rows = as_int(m), columns = as_int(n);
  const char* job = vectors == SingularVectors::kNone      ? "N"
                    : vectors == SingularVectors::kReduced ? "S"
                                                           : "A";
  const fortran_int vt_rows = leading(vectors == SingularVectors::kReduced ? k : n);
  std::vector<fortran_int> integers(static_cast<size_t>(8 * k));
  fortran_int info = 0;
  with_memory([&](double* memory, const fortran_int* length) {
    dgesdd_(job, &rows, &columns, a, &rows, values, u, &rows, vt, &vt_rows, memory, length,
            integers.data(), &info, 1);
    check_arguments(info);
  });
  return info;
}

void product(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c) {
  if (m == 0 || n == 0) return;
  const fortran_int rows = as_int(m), columns = as_int(n), inner = as_int(k);
  const fortran_int ldb = leading(k);
  const double one = 1, zero = 0;
  dgemm_("N", "N", &rows, &columns, &inner, &one, a, &rows, b, &ldb, &zero, c, &rows, 1, 1);
}

}  // namespace lockstep::cpu::lapack
