// What can this machine do at FLUX.1's shapes? Rates of LibTorch's best ways, as JSON.
//
//   ceilings [DEVICE] [ROWS ...]
//
// The CPU is the default. Rows are tokens, by default 1536 and 4608: 512x512 and 1024x1024 with 512
// text tokens.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/cpu/Utils.h>
#include <c10/core/InferenceMode.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/flags/flag_values.h"
#include "app/machine/hardware.h"
#include "app/print/readable_json.h"
#include "ceilings.h"
#include "instruction_peaks.h"
#include "pipeline/devices/devices.h"

namespace {

using namespace braid;

constexpr std::int64_t kHeads = 24, kHead = 128;
// Inputs and outputs of the layers in both kinds of blocks.
constexpr std::pair<std::int64_t, std::int64_t> kLayers[] = {
    {3072, 9216}, {3072, 12288}, {12288, 3072}, {3072, 21504}, {15360, 3072}};

// Throws InputError.
std::int64_t rows_named(const char* text) {
  return std::int64_t(whole_number("the number of rows", text, 1, 1'000'000));
}

OrderedJson ways_of(const std::vector<WayTime>& times, double flops) {
  OrderedJson ways;
  for (const auto& [way, seconds] : times)
    ways[way] = {{"seconds", seconds}, {"tera_per_s", flops / seconds / 1e12}};
  return ways;
}

std::vector<at::ScalarType> numbers_of_products(at::Device device) {
  if (device.is_cpu()) return {at::kBFloat16, at::kFloat, at::kChar};
  return {at::kBFloat16, at::kChar, at::kFloat8_e4m3fn};
}

OrderedJson products_of(Ceilings& ceilings, at::Device device, std::int64_t rows) {
  auto list = OrderedJson::array();
  for (const auto dtype : numbers_of_products(device))
    for (const auto& [inputs, outputs] : kLayers) {
      const ProductShape shape{rows, inputs, outputs};
      const auto& times = ceilings.product(dtype, shape);
      list.push_back({{"dtype", c10::getDtypeNames(dtype).first},
                      {"rows", rows},
                      {"inputs", inputs},
                      {"outputs", outputs},
                      {"best_tera_per_s", shape.flops() / times.front().seconds / 1e12},
                      {"ways", ways_of(times, shape.flops())}});
      std::fprintf(stderr, ".");
    }
  return list;
}

OrderedJson attention_of(Ceilings& ceilings, std::int64_t rows) {
  auto list = OrderedJson::array();
  for (const auto dtype : {at::kBFloat16, at::kFloat}) {
    const AttentionShape shape{kHeads, rows, rows, kHead};
    list.push_back({{"dtype", c10::getDtypeNames(dtype).first},
                    {"tokens", rows},
                    {"ways", ways_of(ceilings.attention(dtype, shape), shape.flops())}});
  }
  return list;
}

OrderedJson peaks_of(int threads) {
  auto peaks = OrderedJson::object();
  for (const auto& peak : instruction_peaks(threads)) peaks[peak.name] = peak.per_second / 1e12;
  return peaks;
}

}  // namespace

int main(int argc, char** argv) try {
  const c10::InferenceMode no_autograd;
  std::vector<std::int64_t> all_rows;
  int first = 1;
  std::string name = "cpu";
  if (argc > 1 && std::isalpha(argv[1][0])) name = argv[first++];
  for (int i = first; i < argc; ++i) all_rows.push_back(rows_named(argv[i]));
  if (all_rows.empty()) all_rows = {1536, 4608};
  const auto device = find_device(name);
  Ceilings ceilings(device);
  OrderedJson json = {
      {"machine", name_of_machine(name)}, {"device", name},
      {"threads", at::get_num_threads()}, {"memory_gb_per_s", ceilings.memory_speed() / 1e9},
      {"products", OrderedJson::array()}, {"attention", OrderedJson::array()}};
  if (device.is_cpu())
    json["instructions_tera_per_s"] = peaks_of(at::get_num_threads());
  else
    json["copy_gb_per_s"] = ceilings.copy_speed() / 1e9;
  for (const auto rows : all_rows) {
    for (auto& product : products_of(ceilings, device, rows)) json["products"].push_back(product);
    for (auto& attention : attention_of(ceilings, rows)) json["attention"].push_back(attention);
  }
  std::fprintf(stderr, "\n");
  std::printf("%s", indented_json(json).c_str());
} catch (const braid::InputError& error) {
  std::fprintf(stderr, "ceilings: %s\n", error.what());
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "ceilings: %s\n", error.what());
  return 1;
}
