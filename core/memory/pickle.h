#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Writes one Python object in pickle protocol 2, using only types that readers in other languages
/// understand, too: None, booleans, integers, floats, texts, lists, dictionaries, pairs. Equal
/// texts are stored once.
///
/// A dictionary is written between `begin_dict` and `end_dict`, alternating keys and values; lists
/// and pairs likewise. Exactly one object must be complete when `finish` is called. Not
/// thread-safe.
class PickleWriter {
 public:
  PickleWriter();

  void none();
  void boolean(bool value);
  void integer(int64_t value);
  void integer(uint64_t value);
  void real(double value);
  /// Writes a text; each byte that is not valid UTF-8 becomes U+FFFD.
  void text(std::string_view value);

  void begin_list();
  void end_list();
  void begin_dict();
  void end_dict();
  void begin_pair();
  void end_pair();

  /// Memoizes the object that was just completed; `recall` of the returned number refers to it
  /// again.
  uint32_t remember();
  void recall(uint32_t number);

  /// Returns the pickle. Nothing may be written afterwards.
  std::string finish();

 private:
  enum class Kind : uint8_t { kList, kDict, kPair };
  struct Open {
    Kind kind;
    size_t count = 0;  ///< number of objects in it, keys and values alike
  };

  void begin(Kind kind);
  void end(Kind kind);
  void place();
  void little_endian(uint64_t value, int bytes);

  std::string bytes_;
  std::vector<Open> open_;
  std::map<std::string, uint32_t, std::less<>> texts_;
  uint32_t remembered_ = 0;
};

}  // namespace lockstep
