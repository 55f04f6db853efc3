// std::source_location for clang 14, which lacks the builtin that libstdc++ makes it of. Included
// before each file of a user's project (LockstepConfig.cmake), and of those that clang only checks.

#pragma once

#include <version>

#if defined(__clang__) && !__has_builtin(__builtin_source_location)
#include <cstdint>
namespace std {
class source_location {
 public:
  static constexpr source_location current(const char* file = __builtin_FILE(),
                                           uint_least32_t line = __builtin_LINE()) noexcept {
    source_location here;
    here.file_ = file;
    here.line_ = line;
    return here;
  }
  constexpr const char* file_name() const noexcept { return file_; }
  constexpr const char* function_name() const noexcept { return ""; }
  constexpr uint_least32_t line() const noexcept { return line_; }
  constexpr uint_least32_t column() const noexcept { return 0; }

 private:
  const char* file_ = "";
  uint_least32_t line_ = 0;
};
}  // namespace std
#endif
