# A lamp in the wind: burns for a while, then goes out with status 3.
echo "flickering"
sleep 75
echo "out"
exit 3
