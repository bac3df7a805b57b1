// The header parser: what it accepts, and that every false header is rejected with a message.
#include "weights/files/gguf_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "files.h"
#include "weights/adapters/adapter_file.h"

namespace braid::gguf_header_test {

using testing::HasSubstr;
using namespace testing_files;

// Concatenated little-endian numbers and strings.
class GgufBytes {
 public:
  GgufBytes& u32(std::uint64_t value) { return number(value, 4); }
  GgufBytes& u64(std::uint64_t value) { return number(value, 8); }
  GgufBytes& text(const std::string& value) { return u64(value.size()).raw(value); }
  GgufBytes& raw(const std::string& value) {
    bytes_ += value;
    return *this;
  }
  GgufBytes& aligned(std::size_t to = 32) {
    while (bytes_.size() % to != 0) bytes_ += '\0';
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  GgufBytes& number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += char(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

constexpr int kF32 = 0, kQ8_0 = 8;

GgufBytes header(int tensors, int values, int version = 3) {
  GgufBytes bytes;
  bytes.raw("GGUF").u32(std::uint64_t(version)).u64(std::uint64_t(tensors));
  return bytes.u64(std::uint64_t(values));
}

struct Described {
  std::string name = "t";
  std::vector<std::uint64_t> extents = {4};  // innermost first
  std::uint64_t type = kF32, offset = 0;
};
void describe(GgufBytes& bytes, const Described& t) {
  bytes.text(t.name).u32(t.extents.size());
  for (const auto extent : t.extents) bytes.u64(extent);
  bytes.u32(t.type).u64(t.offset);
}

// One tensor of 16 bytes.
std::string one(const Described& t, std::size_t data = 16) {
  auto bytes = header(1, 0);
  describe(bytes, t);
  return bytes.aligned().raw(std::string(data, 'x')).str();
}

std::string two(const Described& a, const Described& b, std::size_t data) {
  auto bytes = header(2, 0);
  describe(bytes, a);
  describe(bytes, b);
  return bytes.aligned().raw(std::string(data, 'x')).str();
}

std::vector<TensorEntry> parse(const std::string& file) {
  return parse_gguf_header(std::as_bytes(std::span(file)), "f.gguf");
}

std::string refusal(const std::string& file) {
  try {
    parse(file);
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("f.gguf"));
    return e.what();
  }
  return "accepted";
}

TEST(GgufHeader, FindsTensorsWhereTheyLie) {
  for (const int version : {2, 3}) {
    auto bytes = header(2, 3, version);
    bytes.text("name").u32(8).text("value");
    bytes.text("words").u32(9).u32(8).u64(2).text("one").text("two");
    bytes.text("numbers").u32(9).u32(4).u64(2).u32(7).u32(8);
    describe(bytes, {.name = "a", .extents = {64, 3}, .type = kQ8_0});
    describe(bytes, {.name = "b", .extents = {}, .offset = 224});
    const auto data = bytes.aligned().str().size();
    const auto entries = parse(bytes.raw(std::string(228, 'x')).str());
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].name, "a");
    EXPECT_EQ(entries[0].type, ElementType::kQ8_0);
    EXPECT_EQ(entries[0].shape, (std::vector<std::int64_t>{3, 64})) << "the outermost first";
    EXPECT_EQ(entries[0].begin, data);
    EXPECT_EQ(entries[0].size, 3u * 2 * 34);
    EXPECT_TRUE(entries[1].shape.empty());
    EXPECT_EQ(entries[1].begin, data + 224);
  }
}

TEST(GgufHeader, TensorsAreAlignedAsTheFileSays) {
  auto bytes = header(2, 1);
  bytes.text("general.alignment").u32(4).u32(8);
  describe(bytes, {.name = "a", .extents = {1}});
  describe(bytes, {.name = "b", .extents = {1}, .offset = 8});
  EXPECT_EQ(parse(bytes.aligned(8).raw(std::string(16, 'x')).str()).size(), 2u);
  for (const std::uint64_t wrong : {0u, 3u, 1u << 31}) {
    auto odd = header(0, 1);
    EXPECT_THAT(refusal(odd.text("general.alignment").u32(4).u32(wrong).str()),
                HasSubstr("power of two"));
  }
  auto text = header(0, 1);
  EXPECT_THAT(refusal(text.text("general.alignment").u32(8).text("8").str()),
              HasSubstr("32-bit number"));
}

// The gguf package writes as many dims as an array has, more than ggml's 4.
TEST(GgufHeader, TensorsOfFiveDimsAreRead) {
  EXPECT_EQ(parse(one({.extents = {2, 2, 1, 1, 1}}))[0].shape,
            (std::vector<std::int64_t>{1, 1, 1, 2, 2}));
}

// `shape` is of the int32 type unless told otherwise.
std::string one_shaped(const Described& t, const std::vector<std::uint64_t>& shape,
                       std::uint64_t type = 5) {
  auto bytes = header(1, 1);
  bytes.text("comfy.gguf.orig_shape.t").u32(9).u32(type).u64(shape.size());
  for (const auto extent : shape) bytes.u32(extent);
  describe(bytes, t);
  return bytes.aligned().raw(std::string(4096, 'x')).str();
}

// ComfyUI-GGUF notes the original shape of tensors that it stores in another.
TEST(GgufHeader, ShapesMayBeNotedBesideTensors) {
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(parse(one_shaped({.extents = {24}}, {4, 3, 1, 1, 2}))[0].shape, (Shape{4, 3, 1, 1, 2}));
  const auto coded = parse(one_shaped({.extents = {128, 3}, .type = kQ8_0}, {6, 64}))[0];
  EXPECT_EQ(coded.shape, (Shape{6, 64}));
  EXPECT_EQ(coded.size, 12u * 34);
  EXPECT_EQ(parse(one_shaped({.name = "u", .extents = {24}}, {5}))[0].shape, Shape{24});
  EXPECT_THAT(refusal(one_shaped({.extents = {24}}, {5, 5})),
              HasSubstr("tensor 't' in its original shape takes 100 bytes, as it is stored 96"));
  EXPECT_THAT(refusal(one_shaped({.extents = {96}, .type = kQ8_0}, {2, 48})),
              HasSubstr("do not make up blocks of 32"));
  EXPECT_THAT(refusal(one_shaped({.extents = {24}}, {24}, 6)),
              HasSubstr("orig_shape.t' should be an array of 32-bit numbers"));
  EXPECT_THAT(refusal(one_shaped({.extents = {1}}, {1u << 31})), HasSubstr("an extent of -"));
  EXPECT_THAT(refusal(one_shaped({.extents = {1}}, std::vector<std::uint64_t>(9, 1))),
              HasSubstr("claims 9 dims, at most 8"));
  auto text = header(0, 1);
  EXPECT_THAT(refusal(text.text("comfy.gguf.orig_shape.t").u32(8).text("8").str()),
              HasSubstr("should be an array"));
}

TEST(GgufHeader, RefusesPartsOfFiles) {
  const auto split = [](std::uint64_t parts) {
    auto bytes = header(0, 1);
    return refusal(bytes.text("split.count").u32(2).raw({char(parts), char(parts >> 8)}).str());
  };
  EXPECT_THAT(split(259), HasSubstr("f.gguf is one of 259 parts of a GGUF file"));
  EXPECT_EQ(split(1), "accepted");
  EXPECT_EQ(split(0), "accepted");
}

TEST(GgufHeader, RefusesOtherFilesAndVersions) {
  EXPECT_THAT(refusal(""), HasSubstr("cut short"));
  EXPECT_THAT(refusal("GGUFFF"), HasSubstr("cut short"));
  EXPECT_THAT(refusal("GGML" + std::string(60, '\0')), HasSubstr("is not a GGUF file"));
  EXPECT_THAT(refusal(header(0, 0, 1).str()), HasSubstr("version 1"));
  EXPECT_THAT(refusal(header(0, 0, 4).str()), HasSubstr("version 4"));
  EXPECT_THAT(refusal(header(0, 0, 0x03000000).str()), HasSubstr("big-endian"));
}

TEST(GgufHeader, RefusesCountsAndStringsThatTheFileCannotHold) {
  auto tensors = GgufBytes().raw("GGUF").u32(3).u64(1ull << 60).u64(0);
  EXPECT_THAT(refusal(tensors.str()), HasSubstr("claims 1152921504606846976 tensors"));
  auto values = GgufBytes().raw("GGUF").u32(3).u64(0).u64(~0ull);
  EXPECT_THAT(refusal(values.str()), HasSubstr("values"));
  auto key = header(0, 1);
  EXPECT_THAT(refusal(key.u64(1ull << 60).raw(std::string(20, 'k')).str()),
              HasSubstr("takes 1152921504606846976 bytes"));
  auto text = header(0, 1);
  EXPECT_THAT(refusal(text.text("k").u32(8).u64(~0ull).str()), HasSubstr("cut short or wrong"));
  auto array = header(0, 1);
  EXPECT_THAT(refusal(array.text("k").u32(9).u32(10).u64(1ull << 61).str()),
              HasSubstr("claims 2305843009213693952 values"));
  auto type = header(0, 1);
  EXPECT_THAT(refusal(type.text("k").u32(13).u32(0).str()), HasSubstr("unknown type 13"));
  auto deep = header(0, 1);
  deep.text("k").u32(9);
  for (int i = 0; i < 10'000; ++i) deep.u32(9).u64(1);
  EXPECT_THAT(refusal(deep.str()), HasSubstr("too deep"));
}

TEST(GgufHeader, RefusesEntriesThatDoNotAddUp) {
  EXPECT_EQ(refusal(one({})), "accepted");
  EXPECT_THAT(refusal(one({.extents = {5}})), HasSubstr("takes 20 bytes"));
  EXPECT_THAT(refusal(one({.offset = 32})), HasSubstr("truncated"));
  EXPECT_THAT(refusal(one({.offset = ~31ull})), HasSubstr("truncated"));
  EXPECT_THAT(refusal(one({.offset = 4})), HasSubstr("not a multiple of the alignment"));
  EXPECT_THAT(refusal(one({.extents = {33}, .type = kQ8_0})),
              HasSubstr("do not make up blocks of 32"));
  EXPECT_THAT(refusal(one({.type = 17})), HasSubstr("GGUF type 17 (IQ2_XS), which"));
  EXPECT_THAT(refusal(one({.type = 4})), HasSubstr("GGUF type 4 (Q4_2), which"));
  EXPECT_THAT(refusal(one({.type = 33})), HasSubstr("GGUF type 33 (Q4_0_8_8), which"));
  EXPECT_THAT(refusal(one({.type = 38})), HasSubstr("GGUF type 38 (IQ4_NL_8_8), which"));
  EXPECT_THAT(refusal(one({.type = 4'000'000'000})), HasSubstr("GGUF type 4000000000"));
  EXPECT_THAT(refusal(one({.extents = std::vector<std::uint64_t>(9, 1)})), HasSubstr("9 dims"));
  EXPECT_THAT(refusal(one({.extents = {~0ull}})), HasSubstr("extent"));
  EXPECT_THAT(refusal(one({.extents = {1ull << 40, 1ull << 40}})), HasSubstr("64 bits"));
  EXPECT_THAT(refusal(two({}, {}, 64)), HasSubstr("appears twice"));
  EXPECT_THAT(refusal(two({}, {.name = "u"}, 16)), HasSubstr("overlap"));
  EXPECT_THAT(refusal(two({}, {.name = "u", .offset = 64}, 80)), HasSubstr("belong to no tensor"));
  EXPECT_EQ(refusal(two({}, {.name = "u", .offset = 32}, 48)), "accepted");
}

// The gguf package reads such files, too: only where tensors begin is written in them.
TEST(GgufHeader, BytesMayFollowTheLastTensor) {
  for (const std::size_t bytes : {16u, 17u, 80u, 1000u})
    EXPECT_EQ(parse(one({}, bytes)).size(), 1u);
  EXPECT_EQ(parse(header(0, 0).aligned().raw(std::string(100, 'x')).str()).size(), 0u);
}

// A file of such tensors only may end before the alignment's next multiple.
TEST(GgufHeader, TensorsOfNoBytesLieInsideTheFile) {
  auto bytes = header(1, 0);
  describe(bytes, {.extents = {0}});
  const auto file = bytes.str();
  const auto entries = parse(file);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_LE(entries[0].begin, file.size());
  EXPECT_EQ(entries[0].size, 0u);
}

TEST(GgufHeader, RefusesAFileThatIsCutShortAnywhere) {
  const auto whole = two({.extents = {2, 2}}, {.name = "u", .offset = 32}, 48);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal(whole.substr(0, size)), "accepted") << size;
}

// Metadata of adapters is read where safetensors files have it.
TEST(GgufHeader, OfAFileThatIsNoAdapter) {
  const TemporaryFolder folder;
  for (const auto* const name : {"lora.gguf", "lora.safetensors"}) {
    write_file(folder / name, one({.name = "a.lora_A.weight"}));
    EXPECT_THAT(message_of([&] { (void)AdapterFile(folder / name); }),
                HasSubstr(std::string(name) + " is a GGUF file"));
  }
}

}  // namespace braid::gguf_header_test
