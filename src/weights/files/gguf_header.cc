#include "weights/files/gguf_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <string_view>

#include "base/error.h"

namespace braid {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kDefaultAlignment = 32, kMaxAlignment = 1u << 20;
constexpr std::uint32_t kMaxDims = 8;  // ggml has 4, the gguf package writes any number
constexpr int kMaxNesting = 4;         // arrays within arrays

// The byte sizes of value types, by type number; 0 for strings and arrays.
constexpr std::uint32_t kUint16Value = 2, kUint32Value = 4, kInt32Value = 5, kStringValue = 8,
                        kArrayValue = 9;
constexpr std::array<std::uint64_t, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// ComfyUI-GGUF's key of the shape that a tensor is meant to have, outermost dim first, where it is
// stored in another one.
constexpr std::string_view kShapeKey = "comfy.gguf.orig_shape.";

struct GgufType {
  std::uint32_t number;
  ElementType type;
};
constexpr std::array<GgufType, 20> kGgufTypes = {
    {{0, ElementType::kFloat32},  {1, ElementType::kFloat16},  {2, ElementType::kQ4_0},
     {3, ElementType::kQ4_1},     {6, ElementType::kQ5_0},     {7, ElementType::kQ5_1},
     {8, ElementType::kQ8_0},     {10, ElementType::kQ2_K},    {11, ElementType::kQ3_K},
     {12, ElementType::kQ4_K},    {13, ElementType::kQ5_K},    {14, ElementType::kQ6_K},
     {20, ElementType::kIq4Nl},   {23, ElementType::kIq4Xs},   {24, ElementType::kInt8},
     {25, ElementType::kInt16},   {26, ElementType::kInt32},   {27, ElementType::kInt64},
     {28, ElementType::kFloat64}, {30, ElementType::kBfloat16}}};

// Types that files have and Braid cannot read, for its words; ggml removed some of them.
struct OtherGgufType {
  std::uint32_t number;
  const char* name;
};
constexpr std::array<OtherGgufType, 22> kOtherGgufTypes = {
    {{4, "Q4_2"},    {5, "Q4_3"},        {9, "Q8_1"},        {15, "Q8_K"},       {16, "IQ2_XXS"},
     {17, "IQ2_XS"}, {18, "IQ3_XXS"},    {19, "IQ1_S"},      {21, "IQ3_S"},      {22, "IQ2_S"},
     {29, "IQ1_M"},  {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},   {33, "Q4_0_8_8"},   {34, "TQ1_0"},
     {35, "TQ2_0"},  {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {39, "MXFP4"},
     {40, "NVFP4"},  {41, "Q1_0"}}};

// Reads a file sequentially and never past its end.
class GgufReader {
 public:
  GgufReader(std::span<const std::byte> file, const std::string& source)
      : file_(file), source_(source) {}

  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return file_.size() - at_; }

  template <class Number>
  Number number(const char* what) {
    expect(sizeof(Number), what);
    Number value;
    std::memcpy(&value, file_.data() + at_, sizeof(value));  // files and machines: little-endian
    at_ += sizeof(value);
    return value;
  }
  std::string string(const char* what) {
    const auto length = number<std::uint64_t>(what);
    expect(length, what);
    const std::string text(reinterpret_cast<const char*>(file_.data()) + at_, std::size_t(length));
    at_ += length;
    return text;
  }
  void skip_value(std::uint32_t type, const std::string& key, int nesting = 0);

 private:
  void expect(std::uint64_t bytes, const char* what) const {
    require(bytes <= left(), source_, " is cut short or wrong: ", what, " at byte ", at_, " takes ",
            bytes, " bytes, the file has ", left(), " left");
  }

  std::span<const std::byte> file_;
  const std::string& source_;
  std::uint64_t at_ = 0;
};

void GgufReader::skip_value(std::uint32_t type, const std::string& key, int nesting) {
  require(type < kValueBytes.size(), source_, ": the value of '", key, "' has the unknown type ",
          type);
  if (type == kStringValue) {
    const auto length = number<std::uint64_t>("a string");
    expect(length, "a string");
    at_ += length;
    return;
  }
  if (type != kArrayValue) {
    expect(kValueBytes[type], "a value");
    at_ += kValueBytes[type];
    return;
  }
  require(nesting < kMaxNesting, source_, ": the value of '", key, "' nests arrays too deep");
  const auto inner = number<std::uint32_t>("an array");
  const auto count = number<std::uint64_t>("an array");
  require(inner < kValueBytes.size(), source_, ": the array '", key, "' has the unknown type ",
          inner);
  const bool is_plain = kValueBytes[inner] > 0;
  require(count <= left() / std::max<std::uint64_t>(1, kValueBytes[inner]), source_,
          " is cut short or wrong: the array '", key, "' claims ", count, " values");
  if (is_plain)
    at_ += count * kValueBytes[inner];
  else
    for (std::uint64_t i = 0; i < count; ++i) skip_value(inner, key, nesting + 1);
}

ElementType gguf_type(std::uint32_t number, const std::string& where) {
  for (const auto& row : kGgufTypes)
    if (row.number == number) return row.type;
  std::string name;
  for (const auto& other : kOtherGgufTypes)
    if (other.number == number) name = text_of(" (", other.name, ")");
  throw OtherCoding(text_of(where, " is of the GGUF type ", number, name,
                            ", which Braid cannot read: of coded types it reads Q4_0, Q4_1, Q5_0, ",
                            "Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL and IQ4_XS"));
}

// Offsets are relative to the start of the tensors.
TensorEntry read_entry(GgufReader& in, const std::string& source) {
  TensorEntry entry{
      .name = in.string("a tensor's name"), .type = {}, .shape = {}, .begin = 0, .size = 0};
  const auto where = text_of(source, ": tensor '", entry.name, "'");
  const auto dims = in.number<std::uint32_t>("a number of dims");
  require(dims <= kMaxDims, where, " claims ", dims, " dims, at most ", kMaxDims, " are allowed");
  for (std::uint32_t dim = 0; dim < dims; ++dim) {
    const auto extent = in.number<std::uint64_t>("an extent");
    require(extent <= INT64_MAX, where, " claims an extent of ", extent);
    entry.shape.insert(entry.shape.begin(), std::int64_t(extent));
  }
  entry.type = gguf_type(in.number<std::uint32_t>("a type"), where);
  entry.begin = in.number<std::uint64_t>("an offset");
  entry.size = bytes_of(entry.shape, entry.type, where);
  return entry;
}

std::uint64_t read_alignment(GgufReader& in, std::uint32_t type, const std::string& source) {
  require(type == kUint32Value, source, ": 'general.alignment' should be a 32-bit number");
  const std::uint64_t alignment = in.number<std::uint32_t>("the alignment");
  require(std::has_single_bit(alignment) && alignment <= kMaxAlignment, source,
          ": 'general.alignment' should be a power of two up to ", kMaxAlignment, ", it is ",
          alignment);
  return alignment;
}

void check_not_split(GgufReader& in, const std::string& source) {
  const auto parts = in.number<std::uint16_t>("a number of parts");
  require(parts <= 1, source, " is one of ", parts,
          " parts of a GGUF file: Braid reads whole files, llama-gguf-split joins them");
}

std::vector<std::int64_t> read_shape(GgufReader& in, std::uint32_t type, const std::string& key,
                                     const std::string& source) {
  const bool is_array = type == kArrayValue;
  require(is_array && in.number<std::uint32_t>("an array") == kInt32Value, source, ": '", key,
          "' should be an array of 32-bit numbers");
  const auto dims = in.number<std::uint64_t>("an array");
  require(dims <= kMaxDims, source, ": '", key, "' claims ", dims, " dims, at most ", kMaxDims,
          " are allowed");
  std::vector<std::int64_t> shape;
  for (std::uint64_t dim = 0; dim < dims; ++dim) {
    shape.push_back(in.number<std::int32_t>("an extent"));
    require(shape.back() >= 0, source, ": '", key, "' claims an extent of ", shape.back());
  }
  return shape;
}

// What a file's values say of its tensors.
struct TensorFacts {
  std::uint64_t alignment = kDefaultAlignment;
  std::map<std::string, std::vector<std::int64_t>> shapes = {};  // of those stored in another
};

TensorFacts read_values(GgufReader& in, std::uint64_t count, const std::string& source) {
  TensorFacts facts;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto key = in.string("a key");
    const auto type = in.number<std::uint32_t>("a value's type");
    if (key == "general.alignment")
      facts.alignment = read_alignment(in, type, source);
    else if (key.starts_with(kShapeKey))
      facts.shapes[key.substr(kShapeKey.size())] = read_shape(in, type, key, source);
    else if (key == "split.count" && type == kUint16Value)
      check_not_split(in, source);
    else
      in.skip_value(type, key);
  }
  return facts;
}

// Gives the entry's bytes another shape, whose rows should be whole blocks of codes, too.
void reshape(TensorEntry& entry, const std::vector<std::int64_t>& shape,
             const std::string& source) {
  const auto where = text_of(source, ": tensor '", entry.name, "' in its original shape");
  const auto bytes = bytes_of(shape, entry.type, where);
  require(bytes == entry.size, where, " takes ", bytes, " bytes, as it is stored ", entry.size);
  entry.shape = shape;
}

void check_gguf_version(GgufReader& in, const std::string& source) {
  const auto magic = in.number<std::uint32_t>("its beginning");
  require(magic == kMagic, source, " is not a GGUF file: it does not begin with 'GGUF'");
  const auto version = in.number<std::uint32_t>("its version");
  require(version != 0x02000000 && version != 0x03000000, source,
          " is a GGUF file for big-endian machines, which Braid does not read");
  require(version == 2 || version == 3, source, " is a GGUF file of version ", version,
          ", Braid reads 2 and 3");
}

}  // namespace

bool begins_as_gguf(std::span<const std::byte> file) {
  return file.size() >= 4 && std::memcmp(file.data(), "GGUF", 4) == 0;
}

std::vector<TensorEntry> parse_gguf_header(std::span<const std::byte> file,
                                           const std::string& source) {
  constexpr std::uint64_t kLeastPerTensor = 24, kLeastPerValue = 13;  // bytes
  GgufReader in(file, source);
  check_gguf_version(in, source);
  const auto tensors = in.number<std::uint64_t>("its number of tensors");
  const auto values = in.number<std::uint64_t>("its number of values");
  require(tensors <= in.left() / kLeastPerTensor, source, " claims ", tensors,
          " tensors, more than its ", file.size(), " bytes can describe");
  require(values <= in.left() / kLeastPerValue, source, " claims ", values,
          " values, more than its ", file.size(), " bytes can hold");
  const auto facts = read_values(in, values, source);
  const auto alignment = facts.alignment;

  std::vector<TensorEntry> entries;
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    entries.push_back(read_entry(in, source));
    require(names.insert(entries.back().name).second, source, ": tensor '", entries.back().name,
            "' appears twice");
    const auto meant = facts.shapes.find(entries.back().name);
    if (meant != facts.shapes.end()) reshape(entries.back(), meant->second, source);
  }
  const auto data = std::min<std::uint64_t>(
      file.size(), (in.at() + alignment - 1) / alignment * alignment);  // a file may end before
  const auto size = file.size() - data;
  auto end = data;
  for (auto& entry : entries) {
    require(entry.begin % alignment == 0, source, ": tensor '", entry.name, "' begins at byte ",
            entry.begin, " of the data, which is not a multiple of the alignment, ", alignment);
    require(entry.begin <= size && entry.size <= size - entry.begin, source, ": tensor '",
            entry.name, "' takes ", entry.size, " bytes from byte ", entry.begin,
            " of the data on, but the file has ", size, " bytes of it: it is truncated or wrong");
    entry.begin += data;
    end = std::max(end, entry.begin + entry.size);
  }
  check_coverage(entries,
                 {.begin = data,
                  .end = end,  // ggml and the gguf package let more bytes follow
                  .padding_to = alignment},
                 source);
  return entries;
}

std::map<std::string, std::string> gguf_notes(std::span<const std::byte> file) {
  const std::string source = "the file";
  GgufReader in(file, source);
  check_gguf_version(in, source);
  (void)in.number<std::uint64_t>("its number of tensors");
  const auto values = in.number<std::uint64_t>("its number of values");
  std::map<std::string, std::string> texts;
  for (std::uint64_t i = 0; i < values; ++i) {
    const auto key = in.string("a key");
    const auto type = in.number<std::uint32_t>("a value's type");
    if (type == kStringValue)
      texts[key] = in.string("a value");
    else
      in.skip_value(type, key);
  }
  return texts;
}

}  // namespace braid
