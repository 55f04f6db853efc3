#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

/// Expects `statement` to throw `Type` with a message that contains every one of the given texts.
#define EXPECT_THROWS(statement, Type, ...)                                      \
  do {                                                                           \
    try {                                                                        \
      statement;                                                                 \
      ADD_FAILURE() << #statement " did not throw";                              \
    } catch (const Type& error) {                                                \
      const std::string message = error.what();                                  \
      for (const char* part : std::initializer_list<const char*>{__VA_ARGS__}) { \
        EXPECT_NE(message.find(part), std::string::npos)                         \
            << "no \"" << part << "\" in: " << message;                          \
      }                                                                          \
    }                                                                            \
  } while (false)
