#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compile/guard.h"
#include "compile/program.h"
#include "compile/size_terms.h"
#include "core/base/function_ref.h"

namespace lockstep::compiler {

/// One program for all sizes of some dimensions of a function's arguments, made of programs that
/// were recorded for a few: the same calls, in which each number that differs between them is a
/// term of the sizes that vary (SizeTerms). What a call with other sizes runs is the program with
/// the numbers of these; the last few are kept. Not thread-safe.
class SymbolicProgram {
 public:
  /// A program with the kind of call that it was recorded for.
  struct Sample {
    Guard guard;
    std::shared_ptr<const Program> program;
  };
  struct Made {
    std::unique_ptr<SymbolicProgram> program;
    std::string refusal;  ///< why there is none
  };
  /// Takes at least two samples that differ in sizes.
  static Made make(std::vector<Sample> samples);
  /// Whether calls of the two kinds differ in sizes of 2 and more alone, and in strides of the same
  /// order. Size 1 is one of its own, because it broadcasts.
  static bool differ_in_sizes(const Guard& a, const Guard& b);
  /// Whether sizes of inputs that are equal in one of the kinds are equal in the other.
  static bool have_same_equal_sizes(const Guard& a, const Guard& b);

  /// Is called with a program for sizes that there was none for, before it is used.
  using MakeReady = FunctionRef<void(Program& program)>;
  /// Returns the program for the call; null if the call is of another kind, or has sizes that one
  /// cannot be made for.
  std::shared_ptr<const Program> find(const CompiledArguments& call, const MakeReady& make_ready);

  const std::vector<Sample>& samples() const { return samples_; }
  /// The programs that are kept, the one that ran last first.
  std::vector<std::shared_ptr<const Program>> programs() const;
  /// "input 0 is float32[s0, 64], for s0 from 2", or "for s0 in multiples of 8".
  std::string description() const;

 private:
  /// A size that varies, and the first dimension of an input that has it. It is a multiple of what
  /// the samples' sizes are multiples of: functions that pad do something else for others.
  struct Varying {
    size_t input;
    size_t dim;
    int64_t step;
  };
  /// A number that depends on the sizes, by its place among all numbers of a graph or of the
  /// inputs' types.
  struct Number {
    size_t at;
    SizeTerm term;
  };
  using Sizes = std::vector<int64_t>;

  explicit SymbolicProgram(std::vector<Sample> samples) : samples_(std::move(samples)) {}
  void find_varying();
  /// The sizes that vary as they are in an input's type and so on: `size_at(input, dim)`.
  template <class SizeAt>
  Sizes sizes_from(SizeAt&& size_at) const;
  /// Finds the terms of numbers of which the samples have one each; says why not in `refusal`.
  template <class Of>
  bool find_terms(SizeTerms& terms, const std::vector<Of>& of, std::vector<Number>& numbers,
                  std::string& refusal) const;
  /// Whether the inputs have the types that the sizes give.
  bool fit(const Sizes& sizes, const CompiledArguments& call) const;
  std::shared_ptr<Program> make_program(const Sizes& sizes) const;

  std::vector<Sample> samples_;
  std::vector<Varying> varying_;
  std::vector<Number> of_inputs_;
  std::vector<std::vector<Number>> of_graphs_;
  /// The last ones, the latest first; null where there can be none.
  std::vector<std::pair<Sizes, std::shared_ptr<const Program>>> made_;
};

}  // namespace lockstep::compiler
