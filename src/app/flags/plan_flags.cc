#include "app/flags/plan_flags.h"

#include "app/flags/flag_groups.h"
#include "app/flags/option_names.h"
#include "comm/mesh.h"

namespace braid {
namespace {

void add_count(FlagReader& read, const std::string& names, const std::string& help, int most,
               const std::function<void(int)>& take) {
  read.text(names, "N", "Picture", help, [=](const std::string& flag, const std::string& text) {
    take(int(whole_number(flag, text, 1, most)));
  });
}

void add_words(FlagReader& read, const std::string& name, const std::string& value,
               const std::string& help, std::string& words) {
  read.text(name, value, "Devices", help,
            [&words](const std::string& flag, const std::string& text) {
              require(!text.empty(), flag, " should not be empty");
              words = text;
            });
}

void add_model_flags(FlagReader& read, PlanFlags& f) {
  read.path("-m,--model", "MODEL", "Model",
            "A model directory, a single transformer, or a published\n"
            "model's name: " +
                list_of_named_models() +
                ".\n"
                "Default: the small model that comes with Braid",
            f.options.model);
  read.path("--components", "DIR", "Model",
            "Directory of the other parts, if --model is a single file", f.options.components);
  add_comfy_flag(read, f.options);
  add_controlnet_flag(read, f.options.controlnets);
  add_redux_flag(read, f.options);
  read.text("--dtype", "TYPE", "Model",
            "auto, float32, bfloat16 or float16. Default: auto, the type that\n"
            "the model is stored in",
            into(f.options.dtype, one_of(kDtypes)));
}

void add_picture_flags(FlagReader& read, PlanFlags& f) {
  read.text("--size", "WxH", "Picture",
            "Width and height in pixels, rounded down to multiples of 16; by\n"
            "Krea 2 up, by JoyAI to a trained size; FLUX.3 takes multiples\n"
            "alone. Default: the model's",
            [&](const std::string& flag, const std::string& text) {
              const auto size = picture_size(flag, text);
              f.width = size.width;
              f.height = size.height;
            });
  add_layers_flag(read, f.layers, "Picture",
                  "Layers that --reference is taken apart into, by Qwen-Image-Layered.\n"
                  "Default: 4");
  add_count(read, "--steps", "Denoising steps. Default: the model's", kMostSteps,
            [&](int n) { f.steps = n; });
  add_sampling_flags(read, f.sampling);
  add_count(read, "--max-sequence-length", planned_text_tokens_help(), kLongestTextTokens,
            [&](int n) { f.text_tokens = n; });
  add_count(read, "-n,--num-images", "Pictures in the whole run. Default: 1", kMostPictures,
            [&](int n) { f.num_pictures = n; });
  add_count(read, "--batch-size", "Pictures denoised together. Default: 1", kMostPictures,
            [&](int n) { f.batch_size = n; });
  read.path("--init", "FILE", "Picture",
            "Include the cost of encoding this picture; --size defaults to\n"
            "its size",
            f.init);
  read.texts("--reference", "FILE", "Picture",
             "Include the cost of this picture, for the model to look at; may\n"
             "be given several times",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a path, it is empty");
               f.references.emplace_back(text);
             });
  read.text("--true-cfg", "SCALE", "Picture",
            "Above 1, include a negative prompt and thus two evaluations per\n"
            "step. Default: 1",
            [&](const std::string& flag, const std::string& text) {
              f.true_cfg = finite_number(flag, text);
            });
  read.text("--guidance", "SCALE", "Picture",
            "The model's own scale, as for generate: where it is that of true\n"
            "guidance, 1 (Z-Image, Krea 2: 0) saves the second evaluation.\n"
            "Default: the model's",
            [&](const std::string& flag, const std::string& text) {
              f.guidance = finite_number(flag, text);
            });
}

void add_device_flags(FlagReader& read, PlanFlags& f) {
  add_words(read, "--devices", "LIST",
            "4xrx-7800-xt, 8xh200, cpu, or several separated by commas; for an\n"
            "unknown name, lists the known ones. Default: cpu, this machine",
            f.devices);
  add_words(read, "--memory", "BYTES", "Memory per device, such as 16GB or 16GiB. Default: as sold",
            f.memory);
  add_words(read, "--link", "LINK",
            "Link between devices of a host: pcie3, pcie4, pcie5, pcie4x8,\n"
            "pcie5x8, nvlink3, nvlink, nvlink5, xgmi, ethernet, memory, or a\n"
            "number of GB/s. Default: the device's own",
            f.link);
  add_words(read, "--network", "LINK", "Link between hosts. Default: 100 Gb/s ethernet", f.network);
  read.text("--devices-per-host", "N", "Devices", "Devices in each host. Default: all in one host",
            [&](const std::string& flag, const std::string& text) {
              f.devices_per_host = int(whole_number(flag, text, 1, kMostRanks));
            });
  const auto either = [&](const std::string& name, const std::string& value,
                          const std::string& help, const auto& choices, auto& chosen) {
    read.text(name, value, "Devices", help,
              [choices, &chosen](const std::string& flag, const std::string& text) {
                chosen = choice(flag, text, choices);
              });
  };
  add_planned_shares_flag(read, f.shares);
  auto& l = f.sharing;
  either("--tp-modulation", "HOW", "sharded or replicated. Default: sharded", kModulations,
         l.modulation);
  either("--text-encoder", "WHERE", "rank0 or tp. Default: rank0", kTextRanks, l.text);
  either("--vae", "WHERE", "ranks or rank0. Default: ranks", kDecodeRanks, l.decode);
  either("--ring-form", "FORM", "shift or gather. Default: shift", kRingForms, l.ring_form);
  either("--collectives", "WHOSE", "ordered or native. Default: ordered", kCollectives,
         l.collectives);
}

}  // namespace

const char* const kPlanExamples =
    R"(Lists every layout of the devices, fastest first: predicted time per picture and per step,
peak memory of the first and of the other ranks, and the bytes that the first rank gives
to others in a step. Nothing is loaded, and the devices need not be present. Layouts that
do not fit, or cannot share the request, are counted with the reason; --all lists them. If
memory leaves none, it names flags with which one would fit.

Examples:
  braid plan -m flux1-dev --devices 8xh200
  braid plan -m flux1-dev --devices 4xrx-7800-xt --size 1024x1024 -n 4 --batch-size 4
  braid plan -m flux2-dev --devices 4xrtx-4090 --quantize int8 --quantize-text int8
  braid plan -m ~/models/FLUX.1-dev --devices 4xrtx-4090 --memory 48GB --link pcie4
  braid plan -m flux1-dev --devices 64xh100 --devices-per-host 8 --network 50GB/s -n 64)";

void add_plan_flags(FlagReader& read, PlanFlags& f) {
  add_device_flags(read, f);
  add_model_flags(read, f);
  add_picture_flags(read, f);
  add_memory_flags(read, f.options.memory, f.stated, Bits::kGiven);
  read.flag("--all", "Output", "Also list every layout that is ruled out, with the reason", f.all);
  read.flag("--json", "Output", "Print one JSON object", f.json);
}

}  // namespace braid
