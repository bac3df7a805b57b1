// Files with the shapes of published transformers, under their authors' names. They take room on
// the disk only for their headers: all numbers are 0.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace braid {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

inline void write_sparse(const std::filesystem::path& path, const Shapes& shapes,
                         const std::string& metadata = "") {
  std::string header = metadata.empty() ? "" : "\"__metadata__\":" + metadata;
  std::int64_t at = 0;
  for (const auto& [name, shape] : shapes) {
    std::int64_t bytes = 2;
    std::string extents;
    for (const auto extent : shape) {
      bytes *= extent;
      extents += (extents.empty() ? "" : ",") + std::to_string(extent);
    }
    header += (header.empty() ? "\"" : ",\"") + name + R"(":{"dtype":"BF16","shape":[)" + extents +
              R"(],"data_offsets":[)" + std::to_string(at) + "," + std::to_string(at + bytes) +
              "]}";
    at += bytes;
  }
  header = "{" + header + "}";
  while (header.size() % 8 != 0) header += ' ';
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = char(header.size() >> (8 * i));
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << length << header;
  std::filesystem::resize_file(path, 8 + header.size() + std::uint64_t(at));
}

struct FluxBlocks {
  int doubles = 19, singles = 38;
  bool guidance = true;
};

inline Shapes flux1_shapes(const FluxBlocks& f = {}) {
  const std::int64_t d = 3072;
  Shapes s;
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    s[name + ".weight"] = {out, in};
    s[name + ".bias"] = {out};
  };
  const auto embedder = [&](const std::string& name, std::int64_t in) {
    linear(name + ".in_layer", d, in);
    linear(name + ".out_layer", d, d);
  };
  linear("img_in", d, 64);
  linear("txt_in", d, 4096);
  embedder("time_in", 256);
  embedder("vector_in", 768);
  if (f.guidance) embedder("guidance_in", 256);
  linear("final_layer.linear", 64, d);
  linear("final_layer.adaLN_modulation.1", 2 * d, d);
  const auto norms = [&](const std::string& before) {
    for (const char* const norm : {"query_norm", "key_norm"})
      s[before + "norm." + norm + ".scale"] = {128};
  };
  for (int i = 0; i < f.doubles; ++i)
    for (const char* const side : {"img", "txt"}) {
      const auto b = "double_blocks." + std::to_string(i) + "." + side + "_";
      linear(b + "mod.lin", 6 * d, d);
      linear(b + "attn.qkv", 3 * d, d);
      linear(b + "attn.proj", d, d);
      linear(b + "mlp.0", 4 * d, d);
      linear(b + "mlp.2", d, 4 * d);
      norms(b + "attn.");
    }
  for (int i = 0; i < f.singles; ++i) {
    const auto b = "single_blocks." + std::to_string(i) + ".";
    linear(b + "modulation.lin", 3 * d, d);
    linear(b + "linear1", 7 * d, d);
    linear(b + "linear2", d, 5 * d);
    norms(b);
  }
  return s;
}

inline Shapes klein_9b_shapes() {
  const std::int64_t d = 4096;
  Shapes s = {{"img_in.weight", {d, 128}},
              {"txt_in.weight", {d, 12288}},
              {"time_in.in_layer.weight", {d, 256}},
              {"time_in.out_layer.weight", {d, d}},
              {"double_stream_modulation_img.lin.weight", {6 * d, d}},
              {"double_stream_modulation_txt.lin.weight", {6 * d, d}},
              {"single_stream_modulation.lin.weight", {3 * d, d}},
              {"final_layer.linear.weight", {128, d}},
              {"final_layer.adaLN_modulation.1.weight", {2 * d, d}}};
  const auto norms = [&](const std::string& before) {
    for (const char* const norm : {"query_norm", "key_norm"})
      s[before + "norm." + norm + ".scale"] = {128};
  };
  for (int i = 0; i < 8; ++i)
    for (const char* const side : {"img", "txt"}) {
      const auto b = "double_blocks." + std::to_string(i) + "." + side + "_";
      s[b + "attn.qkv.weight"] = {3 * d, d};
      s[b + "attn.proj.weight"] = {d, d};
      s[b + "mlp.0.weight"] = {6 * d, d};
      s[b + "mlp.2.weight"] = {d, 3 * d};
      norms(b + "attn.");
    }
  for (int i = 0; i < 24; ++i) {
    const auto b = "single_blocks." + std::to_string(i) + ".";
    s[b + "linear1.weight"] = {9 * d, d};
    s[b + "linear2.weight"] = {d, 4 * d};
    norms(b);
  }
  return s;
}

inline Shapes zimage_shapes() {
  const std::int64_t d = 3840;
  Shapes s = {
      {"cap_embedder.0.weight", {2560}}, {"x_pad_token", {1, d}}, {"cap_pad_token", {1, d}}};
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    s[name + ".weight"] = {out, in};
    s[name + ".bias"] = {out};
  };
  linear("x_embedder", d, 64);
  linear("cap_embedder.1", d, 2560);
  linear("t_embedder.mlp.0", 1024, 256);
  linear("t_embedder.mlp.2", 256, 1024);
  linear("final_layer.linear", 64, d);
  linear("final_layer.adaLN_modulation.1", d, 256);
  const std::vector<std::pair<std::string, int>> lists = {
      {"noise_refiner", 2}, {"context_refiner", 2}, {"layers", 30}};
  for (const auto& [list, count] : lists)
    for (int i = 0; i < count; ++i) {
      const auto b = list + "." + std::to_string(i) + ".";
      s[b + "attention.qkv.weight"] = {3 * d, d};
      s[b + "attention.out.weight"] = {d, d};
      s[b + "attention.q_norm.weight"] = s[b + "attention.k_norm.weight"] = {128};
      s[b + "feed_forward.w1.weight"] = s[b + "feed_forward.w3.weight"] = {10240, d};
      s[b + "feed_forward.w2.weight"] = {d, 10240};
      for (const char* const norm :
           {"attention_norm1", "attention_norm2", "ffn_norm1", "ffn_norm2"})
        s[b + norm + ".weight"] = {d};
      if (list != "context_refiner") linear(b + "adaLN_modulation.0", 4 * d, 256);
    }
  return s;
}

}  // namespace braid
