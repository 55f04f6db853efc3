#include "core/memory/pickle.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>

#include "tests/core/memory/unpickle.h"

namespace lockstep {
namespace {

using nlohmann::json;

void write(PickleWriter& writer, const json& value) {
  switch (value.type()) {
    case json::value_t::boolean:
      return writer.boolean(value.get<bool>());
    case json::value_t::number_integer:
      return writer.integer(value.get<int64_t>());
    case json::value_t::number_unsigned:
      return writer.integer(value.get<uint64_t>());
    case json::value_t::number_float:
      return writer.real(value.get<double>());
    case json::value_t::string:
      return writer.text(value.get<std::string>());
    case json::value_t::array:
      writer.begin_list();
      for (const json& each : value) write(writer, each);
      return writer.end_list();
    case json::value_t::object:
      writer.begin_dict();
      for (const auto& [key, each] : value.items()) {
        writer.text(key);
        write(writer, each);
      }
      return writer.end_dict();
    default:
      return writer.none();
  }
}

std::string pickled(const json& value) {
  PickleWriter writer;
  write(writer, value);
  return writer.finish();
}

json read_back(const json& value) { return Unpickler(pickled(value)).read(); }

json any_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<int64_t>() >> *rc::gen::inRange(0, 64);
    case 3:
      return *rc::gen::arbitrary<uint64_t>() >> *rc::gen::inRange(0, 64);
    case 4:
      return *rc::gen::arbitrary<double>();
    case 5:
      return std::string(*rc::gen::container<std::string>(rc::gen::inRange<char>(32, 127)));
    case 6: {
      json list = json::array();
      const int count = *rc::gen::inRange(0, 5);
      for (int i = 0; i < count; ++i) list.push_back(any_value(depth - 1));
      return list;
    }
    default: {
      json dictionary = json::object();
      const int count = *rc::gen::inRange(0, 5);
      for (int i = 0; i < count; ++i) {
        dictionary["key " + std::to_string(i)] = any_value(depth - 1);
      }
      return dictionary;
    }
  }
}

RC_GTEST_PROP(Pickle, WhatWasWrittenReadsBack, ()) {
  const json value = any_value(4);
  RC_ASSERT(read_back(value) == value);
}

TEST(Pickle, NumbersAtTheBordersOfEveryForm) {
  for (const int bits : {7, 8, 15, 16, 31, 32, 47, 55, 62, 63}) {
    for (const int64_t near : {-1, 0, 1}) {
      const int64_t value =
          static_cast<int64_t>((uint64_t{1} << bits) + static_cast<uint64_t>(near));
      EXPECT_EQ(read_back(value).get<int64_t>(), value);
      if (value != std::numeric_limits<int64_t>::min()) {
        EXPECT_EQ(read_back(-value).get<int64_t>(), -value);
      }
      const uint64_t positive = (uint64_t{1} << bits) + static_cast<uint64_t>(near);
      EXPECT_EQ(read_back(positive).get<uint64_t>(), positive);
    }
  }
  EXPECT_EQ(read_back(std::numeric_limits<uint64_t>::max()).get<uint64_t>(),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(read_back(std::numeric_limits<int64_t>::min()).get<int64_t>(),
            std::numeric_limits<int64_t>::min());
}

TEST(Pickle, NumbersTakeTheShortestForm) {
  const auto bytes_of = [](int64_t value) {
    return pickled(value).size() - pickled(nullptr).size();
  };
  for (const auto& [value, bytes] : std::vector<std::pair<int64_t, size_t>>{
           {0, 1},
           {255, 1},
           {256, 2},
           {65535, 2},
           {65536, 4},
           {std::numeric_limits<int32_t>::max(), 4},
           {int64_t{1} << 31, 1 + 5},
           {(int64_t{1} << 39) - 1, 1 + 5},
           {int64_t{1} << 39, 1 + 6},
           {-1, 4},
           {std::numeric_limits<int32_t>::min(), 4},
           {std::numeric_limits<int32_t>::min() - int64_t{1}, 1 + 8}}) {
    EXPECT_EQ(bytes_of(value), bytes) << value;
  }
}

TEST(Pickle, LongListsAndDictionariesGoInByPortions) {
  json list = json::array();
  json dictionary = json::object();
  for (int i = 0; i < 3500; ++i) {
    list.push_back(json::array({i, "text " + std::to_string(i % 400)}));
    dictionary[std::to_string(i)] = i;
  }
  EXPECT_EQ(read_back(list), list);
  EXPECT_EQ(read_back(dictionary), dictionary);
  json thousand = json::array();
  for (int i = 0; i < 1000; ++i) thousand.push_back(i);
  EXPECT_EQ(read_back(thousand), thousand);
}

TEST(Pickle, EqualTextsAreStoredOnce) {
  json list = json::array();
  for (int i = 0; i < 100; ++i) list.push_back("a text that is rather long");
  EXPECT_LT(pickled(list).size(), 250u);
}

TEST(Pickle, RememberedObjectsAreRecalled) {
  PickleWriter writer;
  writer.begin_list();
  writer.begin_pair();
  writer.integer(int64_t{1});
  writer.text("one");
  writer.end_pair();
  const uint32_t pair = writer.remember();
  writer.recall(pair);
  writer.end_list();
  EXPECT_EQ(Unpickler(writer.finish()).read(), json::parse(R"([[1, "one"], [1, "one"]])"));
}

TEST(Pickle, BytesThatAreNoUtf8AreReplaced) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(read_back("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(read_back("a\xff"), "a" + bad);
  EXPECT_EQ(read_back("\xc3"), bad);
  EXPECT_EQ(read_back("\xc3("), bad + "(") << "no second byte";
  EXPECT_EQ(read_back("\xe2\x82("), bad + bad + "(") << "no third byte";
  EXPECT_EQ(read_back("\xf0\x9f\x98("), bad + bad + bad + "(") << "no fourth byte";
  EXPECT_EQ(read_back("\xc0\xaf"), bad + bad) << "overlong";
  EXPECT_EQ(read_back("\xed\xa0\x80"), bad + bad + bad) << "a surrogate";
  EXPECT_EQ(read_back("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "beyond Unicode";
  EXPECT_EQ(read_back("\xf5\x80\x80\x80"), bad + bad + bad + bad) << "no first byte";
}

}  // namespace
}  // namespace lockstep
