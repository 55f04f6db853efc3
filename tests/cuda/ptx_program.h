#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::cuda {

/// Kernels of a PTX file, run on the cpu: those of the few instructions that conversions and
/// elementary functions in f32 consist of. Takes the PTX ISA's word for what
/// an instruction computes; where it only bounds the error ("approx"), `ulps` chooses how far the
/// result is off.
class PtxProgram {
 public:
  /// Throws std::runtime_error, naming the line, for an instruction that is not known here.
  explicit PtxProgram(const std::string& text);

  /// Runs the kernel on its first parameter's memory, and writes its second parameter's.
  void run(const std::string& kernel, const void* in, void* out, int ulps = 0) const;
  bool has(const std::string& kernel) const { return kernels_.contains(kernel); }

 private:
  enum class Code : uint8_t {
    kParameter,
    kMove,
    kLoad,
    kStore,
    kToBF16,
    kToHalf,
    kPairToBF16,
    kPairToHalf,
    kOfHalf,
    kSaturate,
    kAdd,
    kSubtract,
    kMultiply,
    kFma,
    kFmaDown,
    kNegate,
    kAbsolute,
    kCopySign,
    kExp2,
    kReciprocal,
    kShiftLeft,
    kLess,
    kGreater,
    kSelect,
    kBranch,
  };
  /// A register, or a number.
  struct Operand {
    int index = -1;
    uint64_t number = 0;
  };
  struct Instruction {
    Code code;
    int bytes = 4;   ///< that are loaded or stored
    int offset = 0;  ///< of the address
    std::vector<Operand> operands;
    bool negated = false;  ///< a branch is taken if its predicate is false
    std::string label = {};
  };
  struct Kernel {
    std::vector<Instruction> instructions;
    std::map<std::string, size_t> labels;  ///< index of the instruction behind it
    size_t registers = 0;
  };

  static const std::map<std::string, Code>& codes();
  static Instruction decode(const std::string& line, std::map<std::string, int>& names,
                            const std::string& kernel);

  std::map<std::string, Kernel> kernels_;
};

}  // namespace lockstep::cuda
