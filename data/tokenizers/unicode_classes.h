#pragma once

#include <cstdint>

namespace lockstep::train {

/// Class of a code point in a tokenizer's splitting rules.
enum class CharClass : uint8_t {
  kLetter,  ///< general category L*
  kNumber,  ///< general category N*
  kSpace,   ///< property White_Space
  kOther,   ///< everything else, unassigned code points included
};

/// The class of `code_point` in Unicode 16.0, the version of the Rust library that tiktoken 0.14
/// splits with. Values that are not code points are kOther. A table lookup for code points below
/// 0x800; a binary search for others.
CharClass char_class(uint32_t code_point);

}  // namespace lockstep::train
