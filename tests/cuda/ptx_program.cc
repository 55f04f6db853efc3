#include "tests/cuda/ptx_program.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace lockstep::cuda {

namespace {

float as_float(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
uint64_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

/// Rounds to a format of halves by its definition: `digits` of significand, the least exponent of a
/// normal number, and the bits that are stored.
uint16_t rounded(float x, int digits, int least, int stored_mantissa) {
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const int bias = 1 - least;
  const auto infinity = static_cast<uint16_t>((2 * bias + 1) << stored_mantissa);
  if (std::isnan(x)) return static_cast<uint16_t>(infinity | 1U << (stored_mantissa - 1));
  const double a = std::fabs(static_cast<double>(x));
  if (std::isinf(x)) return sign | infinity;
  if (a == 0) return sign;
  const int exponent = std::max(std::ilogb(a), least);
  // nearbyint rounds to even.
  const double units = std::nearbyint(std::ldexp(a, digits - 1 - exponent));
  const int64_t whole =
      static_cast<int64_t>(units) + (static_cast<int64_t>(exponent - least) << stored_mantissa);
  return static_cast<uint16_t>(sign | std::min<int64_t>(whole, infinity));
}
uint16_t to_bf16(float x) { return rounded(x, 8, -126, 7); }
uint16_t to_half(float x) { return rounded(x, 11, -14, 10); }

float of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float sign = bits >> 15 != 0 ? -1.0F : 1.0F;
  if (exponent == 31) {
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  }
  const int whole = exponent == 0 ? mantissa : mantissa + 1024;
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - 25);
}

/// Subnormal numbers are zeros (.ftz).
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }
float off_by(double exact, int ulps) {
  auto result = static_cast<float>(exact);
  for (int i = 0; i < std::abs(ulps) && std::isfinite(result) && result != 0; ++i) {
    result = std::nextafter(result, ulps > 0 ? std::numeric_limits<float>::infinity()
                                             : -std::numeric_limits<float>::infinity());
  }
  return flushed(result);
}

/// a b + c, rounded once, towards minus infinity.
float fma_down(float a, float b, float c) {
  const int before = std::fegetround();
  std::fesetround(FE_DOWNWARD);
  const volatile float x = a, y = b, z = c;
  const volatile float result = std::fma(x, y, z);
  std::fesetround(before);
  return result;
}

std::string trimmed(std::string text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  const size_t end = text.find_last_not_of(" \t;");
  return text.substr(begin, end + 1 - begin);
}

}  // namespace

const std::map<std::string, PtxProgram::Code>& PtxProgram::codes() {
  static const std::map<std::string, Code> kCodes = {
      {"ld.param.u64", Code::kParameter},
      {"cvta.to.global.u64", Code::kMove},
      {"mov.f32", Code::kMove},
      {"mov.b32", Code::kMove},
      {"ld.global.f32", Code::kLoad},
      {"ld.global.u16", Code::kLoad},
      {"st.global.f32", Code::kStore},
      {"st.global.u16", Code::kStore},
      {"st.global.u32", Code::kStore},
      {"cvt.rn.bf16.f32", Code::kToBF16},
      {"cvt.rn.f16.f32", Code::kToHalf},
      {"cvt.rn.bf16x2.f32", Code::kPairToBF16},
      {"cvt.rn.f16x2.f32", Code::kPairToHalf},
      {"cvt.f32.f16", Code::kOfHalf},
      {"cvt.sat.f32.f32", Code::kSaturate},
      {"add.rn.f32", Code::kAdd},
      {"sub.rn.f32", Code::kSubtract},
      {"mul.rn.f32", Code::kMultiply},
      {"fma.rn.f32", Code::kFma},
      {"fma.rm.f32", Code::kFmaDown},
      {"neg.f32", Code::kNegate},
      {"abs.f32", Code::kAbsolute},
      {"copysign.f32", Code::kCopySign},
      {"ex2.approx.ftz.f32", Code::kExp2},
      {"rcp.approx.ftz.f32", Code::kReciprocal},
      {"shl.b32", Code::kShiftLeft},
      {"setp.lt.f32", Code::kLess},
      {"setp.gt.f32", Code::kGreater},
      {"selp.f32", Code::kSelect},
  };
  return kCodes;
}

PtxProgram::Instruction PtxProgram::decode(const std::string& line,
                                           std::map<std::string, int>& names,
                                           const std::string& kernel) {
  const auto register_of = [&](const std::string& word) {
    return names.emplace(word, static_cast<int>(names.size())).first->second;
  };
  if (const size_t at = line.find("bra"); line[0] == '@' && at != std::string::npos) {
    const bool negated = line[1] == '!';
    const std::string predicate = trimmed(line.substr(negated ? 2 : 1, at - (negated ? 2 : 1)));
    return {.code = Code::kBranch,
            .operands = {{.index = register_of(predicate)}},
            .negated = negated,
            .label = trimmed(line.substr(line.find('$')))};
  }
  const size_t space = line.find_first_of(" \t");
  const std::string name = line.substr(0, space);
  const auto code = codes().find(name);
  if (code == codes().end()) throw std::runtime_error("[ptx] not known here: " + line);
  Instruction instruction{.code = code->second, .operands = {}};
  if (name.ends_with("16") && !name.starts_with("cvt")) instruction.bytes = 2;
  std::istringstream rest(line.substr(space + 1));
  for (std::string word; std::getline(rest, word, ',');) {
    word = trimmed(word);
    if (word.front() == '[') word = word.substr(1, word.size() - 2);
    if (const size_t plus = word.find('+'); plus != std::string::npos) {
      instruction.offset = std::stoi(word.substr(plus + 1));
      word.resize(plus);
    }
    Operand operand;
    if (word.front() == '%') {
      operand.index = register_of(word);
    } else if (word.starts_with(kernel + "_param_")) {
      operand.number = std::stoull(word.substr(kernel.size() + 7));
    } else if (word.starts_with("0f")) {
      operand.number = std::stoull(word.substr(2), nullptr, 16);
    } else {
      operand.number = std::stoull(word);
    }
    instruction.operands.push_back(operand);
  }
  return instruction;
}

PtxProgram::PtxProgram(const std::string& text) {
  std::istringstream lines(text);
  std::string kernel;
  std::map<std::string, int> names;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    line = trimmed(line);
    if (const size_t at = line.find(".entry "); at != std::string::npos) {
      kernel = line.substr(at + 7, line.find('(') - at - 7);
      names.clear();
    } else if (line == "{") {
      inside = true;
    } else if (line == "}") {
      kernels_[kernel].registers = names.size();
      inside = false;
    } else if (inside && line.starts_with('$') && line.ends_with(':')) {
      kernels_[kernel].labels[line.substr(0, line.size() - 1)] =
          kernels_[kernel].instructions.size();
    } else if (inside && !line.empty() && line[0] != '/' && line[0] != '.' && line != "ret") {
      kernels_[kernel].instructions.push_back(decode(line, names, kernel));
    }
  }
}

void PtxProgram::run(const std::string& kernel, const void* in, void* out, int ulps) const {
  const Kernel& program = kernels_.at(kernel);
  std::vector<uint64_t> registers(program.registers);
  for (size_t at = 0; at < program.instructions.size(); ++at) {
    const Instruction& instruction = program.instructions[at];
    const auto& operands = instruction.operands;
    const auto value = [&](size_t i) {
      const Operand& operand = operands[i];
      return operand.index >= 0 ? registers[static_cast<size_t>(operand.index)] : operand.number;
    };
    const auto number = [&](size_t i) { return as_float(value(i)); };
    const auto set = [&](uint64_t bits) {
      registers[static_cast<size_t>(operands[0].index)] = bits;
    };
    const auto address = [&](size_t i) {
      return std::bit_cast<char*>(value(i)) + instruction.offset;
    };
    const auto pair = [&](uint16_t (*convert)(float)) {
      // The first source is the upper half.
      return static_cast<uint64_t>(convert(number(1))) << 16 | convert(number(2));
    };
    switch (instruction.code) {
      case Code::kParameter:
        set(std::bit_cast<uint64_t>(value(1) == 0 ? in : static_cast<const void*>(out)));
        break;
      case Code::kMove:
        set(value(1));
        break;
      case Code::kLoad: {
        uint64_t loaded = 0;
        std::memcpy(&loaded, address(1), static_cast<size_t>(instruction.bytes));
        set(loaded);
        break;
      }
      case Code::kStore: {
        const uint64_t stored = value(1);
        std::memcpy(address(0), &stored, static_cast<size_t>(instruction.bytes));
        break;
      }
      case Code::kToBF16:
        set(to_bf16(number(1)));
        break;
      case Code::kToHalf:
        set(to_half(number(1)));
        break;
      case Code::kPairToBF16:
        set(pair(&to_bf16));
        break;
      case Code::kPairToHalf:
        set(pair(&to_half));
        break;
      case Code::kOfHalf:
        set(bits_of(of_half(static_cast<uint16_t>(value(1)))));
        break;
      case Code::kSaturate:
        // NaN becomes 0.
        set(bits_of(std::fmin(std::fmax(number(1), 0.0F), 1.0F)));
        break;
      case Code::kAdd:
        set(bits_of(number(1) + number(2)));
        break;
      case Code::kSubtract:
        set(bits_of(number(1) - number(2)));
        break;
      case Code::kMultiply:
        set(bits_of(number(1) * number(2)));
        break;
      case Code::kFma:
        set(bits_of(std::fma(number(1), number(2), number(3))));
        break;
      case Code::kFmaDown:
        set(bits_of(fma_down(number(1), number(2), number(3))));
        break;
      case Code::kNegate:
        set(bits_of(-number(1)));
        break;
      case Code::kAbsolute:
        set(bits_of(std::fabs(number(1))));
        break;
      case Code::kCopySign:
        set(bits_of(std::copysign(number(2), number(1))));
        break;
      case Code::kExp2:
        set(bits_of(off_by(std::exp2(static_cast<double>(flushed(number(1)))), ulps)));
        break;
      case Code::kReciprocal:
        set(bits_of(off_by(1.0 / static_cast<double>(flushed(number(1))), ulps)));
        break;
      case Code::kShiftLeft:
        set(static_cast<uint32_t>(value(1)) << value(2));
        break;
      case Code::kLess:
        set(number(1) < number(2) ? 1 : 0);
        break;
      case Code::kGreater:
        set(number(1) > number(2) ? 1 : 0);
        break;
      case Code::kSelect:
        set(value(3) != 0 ? value(1) : value(2));
        break;
      case Code::kBranch:
        if ((value(0) != 0) != instruction.negated) at = program.labels.at(instruction.label) - 1;
        break;
    }
  }
}

}  // namespace lockstep::cuda
