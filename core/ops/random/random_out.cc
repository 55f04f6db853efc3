// The out= forms of random factories. `out` determines the dtype and the device.

#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/random/random.h"

namespace lockstep {

namespace {

using Format = std::optional<MemoryFormat>;

Tensor empty_as(const Tensor& out, IntList size) { return empty(size, out.options()); }

}  // namespace

LS_OP(rand_out, const Tensor&(IntList, const Tensor&),
      "rand.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("Numbers uniform in [0, 1), written into out.")
    .composite([](IntList size, const Tensor& out) -> const Tensor& {
      return clone_out(out, uniform_(empty_as(out, size)));
    });

LS_OP(
    rand_like_out, const Tensor&(const Tensor&, Format, const Tensor&),
    "rand_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("Numbers uniform in [0, 1), in self's shape, written into out.")
    .composite([](const Tensor& self, Format, const Tensor& out) -> const Tensor& {
      return clone_out(out, uniform_(empty_as(out, self.sizes())));
    });

LS_OP(randn_out, const Tensor&(IntList, const Tensor&),
      "randn.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("Normal numbers of mean 0 and variance 1, written into out.")
    .composite([](IntList size, const Tensor& out) -> const Tensor& {
      return clone_out(out, normal_(empty_as(out, size)));
    });

LS_OP(randn_like_out, const Tensor&(const Tensor&, Format, const Tensor&),
      "randn_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("Normal numbers of mean 0 and variance 1, in self's shape, written into out.")
    .composite([](const Tensor& self, Format, const Tensor& out) -> const Tensor& {
      return clone_out(out, normal_(empty_as(out, self.sizes())));
    });

LS_OP(randint_out, const Tensor&(int64_t, IntList, const Tensor&),
      "randint.out(SymInt high, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("Integers uniform in [0, high), written into out.")
    .composite([](int64_t high, IntList size, const Tensor& out) -> const Tensor& {
      return clone_out(out, random_(empty_as(out, size), 0, high));
    });

LS_OP(randint_low_out, const Tensor&(int64_t, int64_t, IntList, const Tensor&),
      "randint.low_out(SymInt low, SymInt high, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("Integers uniform in [low, high), written into out.")
    .composite([](int64_t low, int64_t high, IntList size, const Tensor& out) -> const Tensor& {
      return clone_out(out, random_(empty_as(out, size), low, high));
    });

LS_OP(randint_like_out, const Tensor&(const Tensor&, int64_t, Format, const Tensor&),
      "randint_like.out(Tensor self, SymInt high, *, MemoryFormat? memory_format=None, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("Integers uniform in [0, high), in self's shape, written into out.")
    .composite([](const Tensor& self, int64_t high, Format, const Tensor& out) -> const Tensor& {
      return clone_out(out, random_(empty_as(out, self.sizes()), 0, high));
    });

LS_OP(randint_like_low_out, const Tensor&(const Tensor&, int64_t, int64_t, Format, const Tensor&),
      "randint_like.low_dtype_out(Tensor self, SymInt low, SymInt high, *, MemoryFormat? "
      "memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("Integers uniform in [low, high), in self's shape, written into out.")
    .composite([](const Tensor& self, int64_t low, int64_t high, Format,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, random_(empty_as(out, self.sizes()), low, high));
    });

LS_OP(randperm_out, const Tensor&(int64_t, const Tensor&),
      "randperm.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("randperm, written into out.")
    .composite([](int64_t n, const Tensor& out) -> const Tensor& {
      return clone_out(out, randperm(n, out.options()));
    });

LS_OP(rand_generator_out, const Tensor&(IntList, Generator*, const Tensor&),
      "rand.generator_out(SymInt[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)")
    .doc("Numbers uniform in [0, 1), written into out.")
    .composite([](IntList size, Generator* generator, const Tensor& out) -> const Tensor& {
      return clone_out(out, uniform_(empty_as(out, size), 0, 1, generator));
    });

LS_OP(rand_like_generator_out, const Tensor&(const Tensor&, Generator*, Format, const Tensor&),
      "rand_like.generator_out(Tensor self, *, Generator? generator, MemoryFormat? "
      "memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("Numbers uniform in [0, 1), in self's shape, written into out.")
    .composite([](const Tensor& self, Generator* generator, Format,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, uniform_(empty_as(out, self.sizes()), 0, 1, generator));
    });

LS_OP(randn_generator_out, const Tensor&(IntList, Generator*, const Tensor&),
      "randn.generator_out(SymInt[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)")
    .doc("Normal numbers of mean 0 and variance 1, written into out.")
    .composite([](IntList size, Generator* generator, const Tensor& out) -> const Tensor& {
      return clone_out(out, normal_(empty_as(out, size), 0, 1, generator));
    });

LS_OP(randn_like_generator_out, const Tensor&(const Tensor&, Generator*, Format, const Tensor&),
      "randn_like.generator_out(Tensor self, *, Generator? generator, MemoryFormat? "
      "memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("Normal numbers of mean 0 and variance 1, in self's shape, written into out.")
    .composite([](const Tensor& self, Generator* generator, Format,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, normal_(empty_as(out, self.sizes()), 0, 1, generator));
    });

LS_OP(randint_generator_out, const Tensor&(int64_t, IntList, Generator*, const Tensor&),
      "randint.generator_out(SymInt high, SymInt[] size, *, Generator? generator, Tensor(a!) out) "
      "-> Tensor(a!)")
    .doc("Integers uniform in [0, high), written into out.")
    .composite([](int64_t high, IntList size, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, random_(empty_as(out, size), 0, high, generator));
    });

LS_OP(randint_low_generator_out,
      const Tensor&(int64_t, int64_t, IntList, Generator*, const Tensor&),
      "randint.low_generator_out(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("Integers uniform in [low, high), written into out.")
    .composite([](int64_t low, int64_t high, IntList size, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, random_(empty_as(out, size), low, high, generator));
    });

LS_OP(randint_like_generator_out,
      const Tensor&(const Tensor&, int64_t, Generator*, Format, const Tensor&),
      "randint_like.generator_out(Tensor self, SymInt high, *, Generator? generator, MemoryFormat? "
      "memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("Integers uniform in [0, high), in self's shape, written into out.")
    .composite([](const Tensor& self, int64_t high, Generator* generator, Format,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, random_(empty_as(out, self.sizes()), 0, high, generator));
    });

LS_OP(randint_like_low_generator_out,
      const Tensor&(const Tensor&, int64_t, int64_t, Generator*, Format, const Tensor&),
      "randint_like.low_generator_dtype_out(Tensor self, SymInt low, SymInt high, *, Generator? "
      "generator, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("Integers uniform in [low, high), in self's shape, written into out.")
    .composite([](const Tensor& self, int64_t low, int64_t high, Generator* generator, Format,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, random_(empty_as(out, self.sizes()), low, high, generator));
    });

LS_OP(randperm_generator_out, const Tensor&(int64_t, Generator*, const Tensor&),
      "randperm.generator_out(SymInt n, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)")
    .doc("randperm, written into out.")
    .composite([](int64_t n, Generator* generator, const Tensor& out) -> const Tensor& {
      return clone_out(out, randperm(n, out.options(), generator));
    });

}  // namespace lockstep
