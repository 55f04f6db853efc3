#pragma once

#include <cstdint>

namespace lockstep::train {

/// What a tokenizer's splitting rules ask of a code point.
enum class CharClass : uint8_t {
  kLetter,  ///< general category L*
  kNumber,  ///< general category N*
  kSpace,   ///< property White_Space
  kOther,   ///< everything else, unassigned code points included
};

/// The class of `code_point` in Unicode 16.0, the version of the Rust library that tiktoken 0.14
/// splits with. Values that are no code points are kOther. Pure and fast for ASCII; others take a
/// binary search.
CharClass char_class(uint32_t code_point);

}  // namespace lockstep::train
