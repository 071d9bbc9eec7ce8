// In place of ppl.common.
#pragma once
#include <iostream>
#define LOG(level) std::cerr
