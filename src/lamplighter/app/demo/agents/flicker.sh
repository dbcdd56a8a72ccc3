# A lamp in the wind: goes out with status 3 after 20 seconds, once; the next one burns for ten minutes.
echo "flickering"
if [ -e "$LAMP_CITY/.gc/flickered" ]; then sleep 600; else touch "$LAMP_CITY/.gc/flickered"; sleep 20; fi
echo "out"
exit 3
