// Turns a prompt into pixels: embed MODEL PROMPT PICTURE.ppm; gives up after a minute.
#include <braid/braid.h>

#include <chrono>
#include <fstream>
#include <iostream>

int main(int argc, char** argv) try {
  if (argc != 4) throw braid::InputError("usage: embed MODEL PROMPT PICTURE.ppm");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::stop_source stop;
  braid::Hooks hooks;
  hooks.stop = stop.get_token();
  hooks.progress = [&](const braid::Progress& at) {
    if (at.phase == braid::Phase::kDenoise)
      std::cerr << "step " << at.done << "/" << at.total << "\n";
    if (std::chrono::steady_clock::now() > deadline) stop.request_stop();
  };
  const braid::Pipeline pipeline({.model = argv[1]}, hooks);
  const auto request = pipeline.complete({.prompts = {argv[2]}, .steps = 4, .seed = 1}, hooks);
  std::cerr << pipeline.info().family << ", " << *request.width << "x" << *request.height << "\n";
  hooks.preview = [](const braid::Preview& rough) {
    std::cerr << "a preview of " << rough.width << "x" << rough.height << "\n";
  };
  const auto pictures = pipeline.generate(request, hooks);
  const auto& picture = pictures.front();
  std::ofstream file(argv[3], std::ios::binary);
  file << "P6 " << picture.width << " " << picture.height << " 255\n"
       << std::string_view(reinterpret_cast<const char*>(picture.rgb.data()), picture.rgb.size());
  file.close();
  if (!file) throw braid::Error(std::string("cannot write ") + argv[3]);
} catch (const braid::Error& e) {  // includes braid::Cancelled
  std::cerr << "embed: " << e.what() << "\n";
  return 1;
}
