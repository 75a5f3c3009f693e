#include "starling/topology/neighbours.h"
